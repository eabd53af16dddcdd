/* Bytes of a file, pulled through a callback into one buffer. Owns the buffer. No locks. */
#ifndef PML_INPUT_H
#define PML_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to `most` bytes into `into`; 0 at the end, -1 where reading failed. */
typedef int64_t (*pml_input_read)(void *arg, void *into, size_t most);

struct pml_input {
    pml_input_read read;
    void *arg;
    unsigned char *buffer;
    const unsigned char *next;
    const unsigned char *end;
    uint64_t before; /* bytes of the file before the buffer */
    bool at_end;
    bool failed; /* the callback failed */
};

/* False: no memory. */
bool pml_input_init(struct pml_input *input, pml_input_read read, void *arg);
/* Fill the buffer until it holds `count` bytes (at most PML_INPUT_MOST); false at the end of the file. */
bool pml_input_fill(struct pml_input *input, size_t count);
void pml_input_drop(struct pml_input *input);

#define PML_INPUT_MOST (64 << 10)

static inline size_t pml_input_left(const struct pml_input *input)
{
    return input->next < input->end ? (size_t)(input->end - input->next) : 0; /* a short opcode reads past the end */
}

static inline bool pml_input_has(struct pml_input *input, size_t count)
{
    return pml_input_left(input) >= count || pml_input_fill(input, count);
}

static inline uint64_t pml_input_offset(const struct pml_input *input)
{
    return input->before + (uint64_t)(input->next - input->buffer);
}

#endif
