/* Reading a pickle of plain data into rows, as a stream. See pickle.h.
 *
 * The fast part is `step`: one opcode, most of them two bytes. Every opcode's fixed part is in the buffer before it
 * runs.
 */
#include "snapshot/pickle.h"

#include <stdio.h>
#include <string.h>

#include "snapshot/shapes.h"

/* The longest opcode with its fixed arguments. */
#define LONGEST 16
#define LONGEST_STRING ((uint64_t)64 << 20)
#define DEEPEST 64
/* How often, in opcodes, it is looked at whether what is read is a snapshot at all. */
#define CHECK_EVERY ((size_t)1 << 16)
#define SLACK ((size_t)1 << 20)
#define MOST_TEXT ((size_t)256 << 20)

bool pml_pickle_init(struct pml_pickle *pickle, pml_input_read read, void *arg)
{
    memset(pickle, 0, sizeof *pickle);
    return pml_input_init(&pickle->input, read, arg) && pml_rows_init(&pickle->rows);
}

void pml_pickle_finish(struct pml_pickle *pickle)
{
    pml_input_drop(&pickle->input);
    PML_DROP(&pickle->stack);
    PML_DROP(&pickle->memo);
    PML_DROP(&pickle->marks);
    PML_DROP(&pickle->text);
}

void pml_pickle_drop(struct pml_pickle *pickle)
{
    pml_pickle_finish(pickle);
    pml_values_drop(&pickle->values);
    pml_rows_drop(&pickle->rows);
}

static enum pml_trouble trouble(bool fine)
{
    return fine ? PML_FINE : PML_TROUBLE_NO_MEMORY;
}

/* ---- what an opcode is made of ---- */

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static uint64_t take(struct pml_pickle *pickle, size_t count)
{
    uint64_t value = little_endian(pickle->input.next, count);
    pickle->input.next += count;
    return value;
}

static enum pml_trouble push(struct pml_pickle *pickle, pml_value value)
{
    return trouble(PML_PUSH(&pickle->stack, value));
}

/* How many values there are above the last mark: all of them may be taken. */
static size_t above_mark(const struct pml_pickle *pickle)
{
    size_t mark = pickle->marks.used ? pickle->marks.items[pickle->marks.used - 1] : 0;
    return pickle->stack.used - mark;
}

static enum pml_trouble push_integer(struct pml_pickle *pickle, int64_t integer)
{
    bool failed = false;
    pml_value value = pml_values_integer(&pickle->values, integer, &failed);
    return failed ? PML_TROUBLE_NO_MEMORY : push(pickle, value);
}

static enum pml_trouble push_container(struct pml_pickle *pickle, enum pml_kind kind)
{
    bool failed = false;
    pml_value value = pml_values_container(&pickle->values, kind, &failed);
    return failed ? PML_TROUBLE_NO_MEMORY : push(pickle, value);
}

static enum pml_trouble push_wide(struct pml_pickle *pickle, enum pml_tag tag, uint64_t bits)
{
    bool failed = false;
    pml_value value = pml_values_wide(&pickle->values, tag, bits, &failed);
    return failed ? PML_TROUBLE_NO_MEMORY : push(pickle, value);
}

/* LONG1 and LONG4: what needs more than 64 bits is no figure of an allocator. */
static enum pml_trouble push_long(struct pml_pickle *pickle, uint64_t length)
{
    if (length > 9)
        return PML_TROUBLE_NOT_PLAIN;
    if (!pml_input_has(&pickle->input, length))
        return PML_TROUBLE_CUT_OFF;
    if (length <= 8) {
        uint64_t value = take(pickle, length);
        if (length && length < 8 && value >> (8 * length - 1) & 1)
            value |= ~UINT64_C(0) << (8 * length);
        return push_integer(pickle, (int64_t)value);
    }
    uint64_t value = take(pickle, 8);
    return take(pickle, 1) ? PML_TROUBLE_NOT_PLAIN : push_wide(pickle, PML_WIDE, value);
}

/* A string that may be longer than the buffer; what has come is copied, never what is announced. */
static enum pml_trouble gather_text(struct pml_pickle *pickle, uint64_t length)
{
    pickle->text.used = 0;
    while (pickle->text.used < length) {
        size_t part = length - pickle->text.used < PML_INPUT_MOST ? length - pickle->text.used : PML_INPUT_MOST;
        if (!pml_input_has(&pickle->input, part))
            return PML_TROUBLE_CUT_OFF;
        if (!PML_RESERVE(&pickle->text, part))
            return PML_TROUBLE_NO_MEMORY;
        memcpy(pickle->text.items + pickle->text.used, pickle->input.next, part);
        pickle->text.used += part;
        pickle->input.next += part;
    }
    return PML_FINE;
}

static enum pml_trouble push_text(struct pml_pickle *pickle, uint64_t length)
{
    const char *text = (const char *)pickle->input.next;
    if (length > LONGEST_STRING)
        return PML_TROUBLE_TOO_MUCH;
    if (length > PML_INPUT_MOST) {
        enum pml_trouble found = gather_text(pickle, length);
        if (found)
            return found;
        text = pickle->text.items;
    } else {
        if (!pml_input_has(&pickle->input, length))
            return PML_TROUBLE_CUT_OFF;
        text = (const char *)pickle->input.next;
        pickle->input.next += length;
    }
    uint32_t number = pml_names_intern(&pickle->rows.names, text, length);
    return number == PML_INDEX_NONE ? PML_TROUBLE_NO_MEMORY : push(pickle, pml_values_make(PML_STRING, number));
}

static enum pml_trouble push_real(struct pml_pickle *pickle)
{
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | pickle->input.next[i];
    pickle->input.next += 8;
    return push_wide(pickle, PML_REAL, bits);
}

/* ---- memo ---- */

static enum pml_trouble put(struct pml_pickle *pickle, uint64_t place)
{
    if (!above_mark(pickle))
        return PML_TROUBLE_DAMAGED;
    pml_value top = pickle->stack.items[pickle->stack.used - 1];
    if (place < pickle->memo.used) {
        pickle->memo.items[place] = top;
        return PML_FINE;
    }
    /* picklers number what they keep one by one; a few may be left out */
    if (place - pickle->memo.used > 4096)
        return PML_TROUBLE_DAMAGED;
    while (pickle->memo.used < place)
        if (!PML_PUSH(&pickle->memo, pml_values_make(PML_NONE, 0)))
            return PML_TROUBLE_NO_MEMORY;
    return trouble(PML_PUSH(&pickle->memo, top));
}

static enum pml_trouble get(struct pml_pickle *pickle, uint64_t place)
{
    return place < pickle->memo.used ? push(pickle, pickle->memo.items[place]) : PML_TROUBLE_DAMAGED;
}

/* ---- containers ---- */

static enum pml_trouble mark(struct pml_pickle *pickle)
{
    if (pickle->marks.used >= DEEPEST || pickle->stack.used > UINT32_MAX)
        return PML_TROUBLE_TOO_MUCH;
    return trouble(PML_PUSH(&pickle->marks, (uint32_t)pickle->stack.used));
}

typedef enum pml_trouble (*shape)(struct pml_pickle *, pml_value, const pml_value *, size_t);

/* Give what is above the last mark to the container below it. */
static enum pml_trouble fill_from_mark(struct pml_pickle *pickle, shape fill)
{
    if (!pickle->marks.used)
        return PML_TROUBLE_DAMAGED;
    size_t start = pickle->marks.items[--pickle->marks.used];
    size_t below = pickle->marks.used ? pickle->marks.items[pickle->marks.used - 1] : 0;
    if (start <= below)
        return PML_TROUBLE_DAMAGED;
    const pml_value *values = pickle->stack.items + start;
    enum pml_trouble found = fill(pickle, values[-1], values, pickle->stack.used - start);
    pickle->stack.used = start;
    return found;
}

/* Give the last one or two values to the container below them. */
static enum pml_trouble fill_with(struct pml_pickle *pickle, shape fill, size_t count)
{
    if (above_mark(pickle) < count + 1)
        return PML_TROUBLE_DAMAGED;
    const pml_value *values = pickle->stack.items + pickle->stack.used - count;
    enum pml_trouble found = fill(pickle, values[-1], values, count);
    pickle->stack.used -= count;
    return found;
}

static enum pml_trouble push_tuple(struct pml_pickle *pickle, size_t count)
{
    pml_value tuple;
    if (above_mark(pickle) < count)
        return PML_TROUBLE_DAMAGED;
    pickle->stack.used -= count;
    enum pml_trouble found = pml_shapes_tuple(pickle, pickle->stack.items + pickle->stack.used, count, &tuple);
    return found ? found : push(pickle, tuple);
}

static enum pml_trouble tuple_from_mark(struct pml_pickle *pickle)
{
    if (!pickle->marks.used)
        return PML_TROUBLE_DAMAGED;
    size_t count = above_mark(pickle);
    pickle->marks.used--;
    return push_tuple(pickle, count);
}

/* ---- what is refused ---- */

/* "module.name" of a GLOBAL opcode, for the message. */
static enum pml_trouble named_global(struct pml_pickle *pickle)
{
    size_t used = 0, lines = 0;
    while (lines < 2 && used < sizeof pickle->detail - 1 && pml_input_has(&pickle->input, 1)) {
        unsigned char byte = *pickle->input.next++;
        lines += byte == '\n';
        if (byte != '\n' || lines == 1)
            pickle->detail[used++] = byte == '\n' ? '.' : byte < 32 || byte > 126 ? '?' : (char)byte;
    }
    pickle->detail[used] = 0;
    return PML_TROUBLE_GLOBAL;
}

/* The same of STACK_GLOBAL: two texts on the stack. */
static enum pml_trouble stacked_global(struct pml_pickle *pickle)
{
    if (above_mark(pickle) < 2)
        return PML_TROUBLE_GLOBAL;
    const pml_value *top = pickle->stack.items + pickle->stack.used;
    size_t used = 0;
    for (int i = -2; i < 0; i++) {
        size_t length = 0;
        const char *text = pml_values_tag(top[i]) == PML_STRING
                               ? pml_names_text(&pickle->rows.names, (uint32_t)pml_values_payload(top[i]), &length)
                               : "";
        for (size_t j = 0; j < length && used < sizeof pickle->detail - 2; j++)
            pickle->detail[used++] = text[j] < 32 || text[j] > 126 ? '?' : text[j];
        if (i == -2)
            pickle->detail[used++] = '.';
    }
    pickle->detail[used] = 0;
    return PML_TROUBLE_GLOBAL;
}

static enum pml_trouble refused(struct pml_pickle *pickle, unsigned char opcode)
{
    switch (opcode) {
    case 'c': return named_global(pickle);
    case 0x93: return stacked_global(pickle);
    default: snprintf(pickle->detail, sizeof pickle->detail, "0x%02x", opcode); return PML_TROUBLE_NOT_PLAIN;
    }
}

/* A pickle of something else could be anything, and endless: it is given up once there is far more of it than a
 * snapshot would have. All limits grow with what has become rows. */
static bool is_far_too_much(const struct pml_pickle *pickle)
{
    size_t fair = 4 * pickle->values.useful + SLACK;
    return pickle->stack.used > fair || pickle->values.objects.used > fair || pickle->values.pairs.used > fair ||
           pickle->values.wide.used > fair || pickle->memo.used > 2 * fair + pickle->rows.names.entries.used ||
           pickle->rows.names.text.used > MOST_TEXT + 64 * pickle->values.useful;
}

/* ---- opcodes ---- */

/* Those of protocol 2 and later that come often. */
static enum pml_trouble step(struct pml_pickle *pickle, unsigned char opcode)
{
    switch (opcode) {
    case 'h': return get(pickle, take(pickle, 1));                   /* BINGET */
    case 'j': return get(pickle, take(pickle, 4));                   /* LONG_BINGET */
    case 0x94: return put(pickle, pickle->memo.used);                /* MEMOIZE */
    case 'q': return put(pickle, take(pickle, 1));                   /* BINPUT */
    case 'r': return put(pickle, take(pickle, 4));                   /* LONG_BINPUT */
    case 'K': return push_integer(pickle, (int64_t)take(pickle, 1)); /* BININT1 */
    case 'M': return push_integer(pickle, (int64_t)take(pickle, 2)); /* BININT2 */
    case 'J': return push_integer(pickle, (int32_t)take(pickle, 4)); /* BININT */
    case 0x8a: return push_long(pickle, take(pickle, 1));            /* LONG1 */
    case '(': return mark(pickle);
    case '}': return push_container(pickle, PML_EMPTY_DICT);
    case ']': return push_container(pickle, PML_EMPTY_LIST);
    case 'u': return fill_from_mark(pickle, pml_shapes_pairs);  /* SETITEMS */
    case 'e': return fill_from_mark(pickle, pml_shapes_append); /* APPENDS */
    case 0x86: return push_tuple(pickle, 2);                    /* TUPLE2 */
    case 0x8c: return push_text(pickle, take(pickle, 1));       /* SHORT_BINUNICODE */
    case 'X': return push_text(pickle, take(pickle, 4));        /* BINUNICODE */
    case 0x95: pickle->input.next += 8; return PML_FINE;        /* FRAME */
    case 'a': return fill_with(pickle, pml_shapes_append, 1);   /* APPEND */
    case 's': return fill_with(pickle, pml_shapes_pairs, 2);    /* SETITEM */
    case 'N': return push(pickle, pml_values_make(PML_NONE, 0));
    case 0x88: return push(pickle, pml_values_make(PML_BOOL, 1));
    case 0x89: return push(pickle, pml_values_make(PML_BOOL, 0));
    case 'G': return push_real(pickle); /* BINFLOAT */
    case ')': return push_tuple(pickle, 0);
    case 0x85: return push_tuple(pickle, 1);
    case 0x87: return push_tuple(pickle, 3);
    case 't': return tuple_from_mark(pickle);
    case 0x8b: return push_long(pickle, take(pickle, 4)); /* LONG4 */
    case 0x8d: return push_text(pickle, take(pickle, 8)); /* BINUNICODE8 */
    case 'C': return push_text(pickle, take(pickle, 1));  /* SHORT_BINBYTES */
    case 'B': return push_text(pickle, take(pickle, 4));  /* BINBYTES */
    default: return refused(pickle, opcode);
    }
}

/* Run opcodes until STOP or trouble. Near the end of the file the buffer holds less than the longest opcode: reading
 * past what came is then noticed afterwards, for the buffer is larger than what it holds. */
static enum pml_trouble run(struct pml_pickle *pickle)
{
    struct pml_input *input = &pickle->input;
    for (;;) {
        if (pml_input_left(input) < LONGEST && !input->at_end)
            pml_input_fill(input, LONGEST);
        if (!pml_input_left(input))
            return PML_TROUBLE_CUT_OFF;
        pickle->offset = pml_input_offset(input);
        unsigned char opcode = *input->next++;
        if (opcode == '.')
            return PML_FINE;
        enum pml_trouble found = step(pickle, opcode);
        if (input->next > input->end)
            return PML_TROUBLE_CUT_OFF;
        if (found)
            return found;
        if (++pickle->checked % CHECK_EVERY == 0 && is_far_too_much(pickle))
            return PML_TROUBLE_TOO_MUCH;
    }
}

static enum pml_trouble begin(struct pml_pickle *pickle)
{
    if (!pml_input_has(&pickle->input, 1))
        return PML_TROUBLE_EMPTY;
    if (*pickle->input.next != 0x80)
        return PML_TROUBLE_NO_PICKLE;
    if (!pml_input_has(&pickle->input, 2))
        return PML_TROUBLE_CUT_OFF;
    unsigned char protocol = pickle->input.next[1];
    pickle->input.next += 2;
    return protocol >= 2 && protocol <= 5 ? PML_FINE : PML_TROUBLE_NO_PICKLE;
}

enum pml_trouble pml_pickle_read(struct pml_pickle *pickle)
{
    enum pml_trouble found = begin(pickle);
    if (!found)
        found = run(pickle);
    if (pickle->input.failed)
        found = PML_TROUBLE_READ;
    if (!found && (pickle->stack.used != 1 || pickle->marks.used))
        found = PML_TROUBLE_DAMAGED;
    if (!found)
        pickle->root = pickle->stack.items[0];
    return pickle->trouble = found;
}
