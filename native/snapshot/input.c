/* Bytes of a file, pulled through a callback. See input.h. */
#include "snapshot/input.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER (256 << 10)
#define SLACK 64

bool pml_input_init(struct pml_input *input, pml_input_read read, void *arg)
{
    *input = (struct pml_input){.read = read, .arg = arg, .buffer = calloc(1, BUFFER + SLACK)};
    input->next = input->end = input->buffer;
    return input->buffer != NULL;
}

static void move_to_front(struct pml_input *input)
{
    size_t left = pml_input_left(input);
    input->before += (uint64_t)(input->next - input->buffer);
    memmove(input->buffer, input->next, left);
    input->next = input->buffer;
    input->end = input->buffer + left;
}

bool pml_input_fill(struct pml_input *input, size_t count)
{
    move_to_front(input);
    while (!input->at_end && pml_input_left(input) < count) {
        size_t left = pml_input_left(input);
        int64_t got = input->read(input->arg, input->buffer + left, BUFFER - left);
        if (got < 0 || (uint64_t)got > BUFFER - left)
            input->failed = true;
        if (got <= 0 || input->failed)
            input->at_end = true;
        else
            input->end += got;
    }
    return pml_input_left(input) >= count;
}

void pml_input_drop(struct pml_input *input)
{
    free(input->buffer);
    *input = (struct pml_input){0};
}
