(() => {
  const UNITS = "BKMGTPE";
  const MARGIN = { left: 70, right: 10, top: 10, bottom: 24 };

  function size(bytes) {
    let value = Math.abs(bytes), unit = 0;
    while (Math.round(value * 100) / 100 >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    return `${bytes < 0 ? "-" : ""}${value.toFixed(2)}${UNITS[unit]}`;
  }

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // A layer comes as the points where it changes, and its values there.
  function unpack(changes, count) {
    const values = new Float64Array(count);
    for (let i = 0; i < changes.length; i += 2) values.fill(changes[i + 1], changes[i], changes[i + 2] ?? count);
    return values;
  }

  class Timeline {
    constructor(root) {
      this.root = root;
      this.canvas = root.querySelector("canvas");
      this.under = root.querySelector(".under");
      this.chosen = root.querySelector(".chosen");
      const data = JSON.parse(root.querySelector("script").textContent);
      this.count = data.moments.length;
      this.x = data.seconds ?? data.moments;
      this.timed = Boolean(data.seconds);
      this.data = data;
      this.layers = data.layers.map((layer) => ({ ...layer, values: unpack(layer.changes, this.count) }));
      this.drawn = this.layers.slice(0, data.colors.length - 1);
      this.from = 0;
      this.to = this.count - 1;
      this.at = null;
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    listen() {
      this.canvas.addEventListener("pointermove", (event) => this.point(this.pointAt(event)));
      this.canvas.addEventListener("pointerleave", () => { this.dragFrom = undefined; this.point(null); });
      this.canvas.addEventListener("pointerdown", (event) => { this.dragFrom = this.pointAt(event); });
      this.canvas.addEventListener("pointerup", (event) => this.release(this.pointAt(event)));
      this.canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.pointAt(event));
      }, { passive: false });
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.root.addEventListener("click", (event) => {
        const how = event.target.dataset?.zoom;
        if (how === "all") this.show(0, this.count - 1);
        else if (how) this.zoom(how === "in" ? 0.5 : 2, this.at ?? Math.round((this.from + this.to) / 2));
      });
    }

    key(event) {
      const step = Math.max(1, Math.round((this.to - this.from) / 100));
      const at = this.at ?? this.from;
      const move = { ArrowLeft: -step, ArrowRight: step, Home: -this.count, End: this.count }[event.key];
      if (move !== undefined) this.point(Math.min(this.to, Math.max(this.from, at + move)));
      else if (event.key === "+" || event.key === "=") this.zoom(0.5, at);
      else if (event.key === "-") this.zoom(2, at);
      else if (event.key === "Enter") this.choose(at);
      else return;
      event.preventDefault();
    }

    release(point) {
      const start = this.dragFrom;
      this.dragFrom = undefined;
      if (start === undefined) return;
      if (Math.abs(this.place(start) - this.place(point)) > 5) this.show(Math.min(start, point), Math.max(start, point));
      else this.choose(point);
    }

    zoom(factor, around) {
      const half = Math.max(2, (this.to - this.from) * factor) / 2;
      const part = (around - this.from) / Math.max(1, this.to - this.from);
      const from = Math.round(around - 2 * half * part);
      this.show(from, from + Math.round(2 * half));
    }

    show(from, to) {
      this.from = Math.max(0, Math.min(from, this.count - 2));
      this.to = Math.min(this.count - 1, Math.max(to, this.from + 1));
      this.draw();
    }

    // ---- from points to places on the canvas ----

    width() { return this.canvas.clientWidth - MARGIN.left - MARGIN.right; }

    place(point) {
      const span = this.x[this.to] - this.x[this.from] || 1;
      return MARGIN.left + this.width() * (this.x[point] - this.x[this.from]) / span;
    }

    pointAt(event) {
      const left = event.clientX - this.canvas.getBoundingClientRect().left - MARGIN.left;
      const wanted = this.x[this.from] + (this.x[this.to] - this.x[this.from]) * left / this.width();
      let low = this.from, high = this.to;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.x[middle] < wanted) low = middle + 1;
        else high = middle;
      }
      return low > this.from && wanted - this.x[low - 1] < this.x[low] - wanted ? low - 1 : low;
    }

    // ---- drawing ----

    draw() {
      const ratio = window.devicePixelRatio || 1;
      const { clientWidth, clientHeight } = this.canvas;
      this.canvas.width = clientWidth * ratio;
      this.canvas.height = clientHeight * ratio;
      this.pen = this.canvas.getContext("2d");
      this.pen.scale(ratio, ratio);
      this.style = getComputedStyle(this.root);
      this.highest = Math.max(1, ...this.data.reserved.slice(this.from, this.to + 1), ...this.data.active.slice(this.from, this.to + 1));
      this.drawAxes(clientHeight);
      this.drawLayers();
      this.drawLine(this.data.reserved, this.style.color, [4, 3]);
      this.drawLine(this.data.active, this.style.color, []);
      if (this.at !== null) this.drawCursor(clientHeight);
    }

    y(bytes) {
      const height = this.canvas.clientHeight - MARGIN.top - MARGIN.bottom;
      return MARGIN.top + height * (1 - bytes / this.highest);
    }

    drawAxes(height) {
      const pen = this.pen;
      pen.font = "12px system-ui, sans-serif";
      pen.fillStyle = this.style.color;
      pen.strokeStyle = "rgba(128, 128, 128, 0.3)";
      for (let i = 0; i <= 4; i += 1) {
        const bytes = this.highest * i / 4;
        pen.textAlign = "right";
        pen.fillText(size(bytes), MARGIN.left - 6, this.y(bytes) + 4);
        pen.beginPath();
        pen.moveTo(MARGIN.left, this.y(bytes));
        pen.lineTo(MARGIN.left + this.width(), this.y(bytes));
        pen.stroke();
      }
      for (let i = 0; i <= 4; i += 1) {
        const x = this.x[this.from] + (this.x[this.to] - this.x[this.from]) * i / 4;
        pen.textAlign = i === 0 ? "left" : i === 4 ? "right" : "center";
        pen.fillText(this.timed ? `${x.toPrecision(4)} s` : `event ${Math.round(x)}`, MARGIN.left + this.width() * i / 4, height - 6);
      }
    }

    drawLayers() {
      const below = new Float64Array(this.count);
      const rest = Float64Array.from(this.data.active);
      for (const layer of this.drawn) layer.values.forEach((value, i) => { rest[i] -= value; });
      [...this.drawn.map((layer) => layer.values), rest].forEach((values, i) => {
        const color = this.data.colors[i < this.drawn.length ? i : this.data.colors.length - 1];
        this.area(below, values, color);
      });
    }

    area(below, values, color) {
      const pen = this.pen;
      pen.beginPath();
      pen.moveTo(this.place(this.from), this.y(below[this.from]));
      for (let i = this.from; i <= this.to; i += 1) {
        pen.lineTo(this.place(i), this.y(below[i] + values[i]));
        if (i < this.to) pen.lineTo(this.place(i + 1), this.y(below[i] + values[i]));
      }
      for (let i = this.to; i >= this.from; i -= 1) {
        if (i < this.to) pen.lineTo(this.place(i + 1), this.y(below[i]));
        pen.lineTo(this.place(i), this.y(below[i]));
      }
      pen.fillStyle = `rgb(${color.join(" ")} / 0.75)`;
      pen.fill();
      for (let i = this.from; i <= this.to; i += 1) below[i] += values[i];
    }

    drawLine(values, color, dash) {
      const pen = this.pen;
      pen.beginPath();
      pen.setLineDash(dash);
      pen.strokeStyle = color;
      for (let i = this.from; i <= this.to; i += 1) {
        pen.lineTo(this.place(i), this.y(values[i]));
        if (i < this.to) pen.lineTo(this.place(i + 1), this.y(values[i]));
      }
      pen.stroke();
      pen.setLineDash([]);
    }

    drawCursor(height) {
      const pen = this.pen;
      pen.strokeStyle = this.style.color;
      pen.beginPath();
      pen.moveTo(this.place(this.at), MARGIN.top);
      pen.lineTo(this.place(this.at), height - MARGIN.bottom);
      pen.stroke();
    }

    // ---- what is said of a point ----

    title(point) {
      const { moments, active, allocated, reserved } = this.data;
      const time = this.timed ? `${this.x[point].toFixed(6)} s, ` : "";
      return `${time}event ${moments[point].toLocaleString("en")}: active ${size(active[point])}, ` +
        `allocated ${size(allocated[point])}, reserved ${size(reserved[point])}`;
    }

    point(point) {
      this.at = point;
      this.under.textContent = point === null ? "\u00a0" : `${this.title(point)}${this.most(point)}`;
      this.draw();
    }

    most(point) {
      const largest = this.layers.reduce((a, b) => (b.values[point] > a.values[point] ? b : a), this.layers[0]);
      return largest?.values[point] ? `; most by ${largest.name}: ${size(largest.values[point])}` : "";
    }

    choose(point) {
      this.at = point;
      const total = this.data.active[point];
      const rows = this.layers.map((layer, i) => ({ name: layer.name, code: layer.code, bytes: layer.values[point], color: this.colorOf(i) }))
        .filter((row) => row.bytes > 0).sort((a, b) => b.bytes - a.bytes);
      const rest = total - rows.reduce((sum, row) => sum + row.bytes, 0);
      if (rest > 0) rows.push({ name: "other lines", code: "", bytes: rest, color: this.colorOf(this.drawn.length) });
      const body = element("tbody", {}, ...rows.map((row) => this.row(row, total)));
      const header = element("thead", {}, element("tr", {}, ...["bytes", "share", "held by", "code"].map((name) => element("th", { scope: "col", textContent: name }))));
      this.chosen.replaceChildren(element("h3", { textContent: this.title(point) }), element("table", {}, header, body));
      this.draw();
    }

    colorOf(i) {
      return this.data.colors[Math.min(i < this.drawn.length ? i : this.data.colors.length - 1, this.data.colors.length - 1)];
    }

    row({ name, code, bytes, color }, total) {
      const key = element("span", { className: "key" });
      key.style.background = `rgb(${color.join(" ")})`;
      return element("tr", {},
        element("td", { textContent: size(bytes), title: `${bytes.toLocaleString("en")} bytes` }),
        element("td", { textContent: `${(100 * bytes / total).toFixed(1)}%` }),
        element("th", { scope: "row" }, key, name),
        element("td", { className: "text" }, element("code", { textContent: code })));
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const root of document.querySelectorAll(".timeline")) root.timeline = new Timeline(root);
  });
})();
