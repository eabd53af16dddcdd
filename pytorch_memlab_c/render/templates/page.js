"use strict";
(() => {
  const root = document.documentElement;

  // ---- theme: the system's, or the one chosen here before ----

  function stored(theme) {
    try {
      if (theme !== undefined) localStorage.setItem("pytorch_memlab_c.theme", theme);
      return localStorage.getItem("pytorch_memlab_c.theme");
    } catch {
      return null; // a page that may not keep anything
    }
  }

  function setTheme(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  }

  // ---- sorting ----

  function sortKey(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.v === undefined) return cell.textContent.trim().toLowerCase();
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  }

  function compare(a, b) {
    return typeof a === "string" ? a.localeCompare(b) : a - b;
  }

  // Missing values stay last; equal ones stay in the order of the source.
  function sortRows(body, column, descending) {
    const entries = Array.from(body.rows, (row) => {
      row.memlabPosition ??= row.sectionRowIndex;
      return { row, key: sortKey(row, column) };
    });
    entries.sort((a, b) => {
      if (a.key === null || b.key === null) {
        if (a.key !== b.key) return a.key === null ? 1 : -1;
      } else {
        const order = compare(a.key, b.key);
        if (order) return descending ? -order : order;
      }
      return a.row.memlabPosition - b.row.memlabPosition;
    });
    // Not append(): the white space between the rows would be left in front of them, and make the next time slow.
    body.replaceChildren(...entries.map((entry) => entry.row));
  }

  // The first press shows numbers from the highest, texts and line numbers from the first.
  function firstOrder(button, body, column) {
    const text = body.rows[0]?.cells[column].dataset.v === undefined;
    return text || button.textContent === "line" ? "ascending" : "descending";
  }

  function sortBy(button) {
    const header = button.closest("th");
    const table = button.closest("table");
    const body = table.tBodies[0];
    const opposite = { ascending: "descending", descending: "ascending" }[header.getAttribute("aria-sort")];
    const order = opposite ?? firstOrder(button, body, header.cellIndex);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    sortRows(body, header.cellIndex, order === "descending");
  }

  // ---- finding functions ----

  function find(text) {
    const wanted = text.trim().toLowerCase();
    const shown = new Set();
    const rows = document.querySelectorAll(".list tbody tr");
    for (const row of rows) {
      const fits = row.querySelector("th").textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      if (fits) shown.add(row.dataset.of);
    }
    let count = 0;
    const sections = document.querySelectorAll("section.function");
    for (const section of sections) {
      const name = section.querySelector("h2").textContent.toLowerCase();
      section.hidden = !(shown.has(section.id) || name.includes(wanted));
      count += section.hidden ? 0 : 1;
    }
    document.getElementById("found").textContent = wanted ? `${count} of ${sections.length}` : "";
  }

  // ---- start ----

  setTheme(stored());
  document.addEventListener("click", (event) => {
    const button = event.target.closest("thead button");
    if (button) sortBy(button);
  });
  document.addEventListener("DOMContentLoaded", () => {
    const controls = document.querySelector(".controls");
    controls.hidden = false;
    controls.addEventListener("submit", (event) => event.preventDefault());
    const theme = document.getElementById("theme");
    theme.value = root.dataset.theme ?? "auto";
    theme.addEventListener("change", () => {
      setTheme(theme.value);
      stored(theme.value);
    });
    document.getElementById("find")?.addEventListener("input", (event) => find(event.target.value));
  });
})();
