#include "assembly.h"

#include <stdlib.h>
#include <string.h>

#define ROWS 1024

static struct assembly *rows[ROWS];

struct assembly *assembly_of(uint32_t association, uint16_t stream, size_t max_size) {
    struct assembly **row = &rows[(association * 31 + stream) % ROWS];
    for (struct assembly *found = *row; found != NULL; found = found->next)
        if (found->association == association && found->stream == stream)
            return found;
    struct assembly *made = calloc(1, sizeof *made);
    uint8_t *bytes = malloc(max_size);
    if (made == NULL || bytes == NULL) {
        free(made);
        free(bytes);
        return NULL;
    }
    *made = (struct assembly){.association = association, .stream = stream, .bytes = bytes, .next = *row};
    *row = made;
    return made;
}

bool assembly_add(struct assembly *assembly, const void *part, size_t length, size_t max_size) {
    if (length > max_size - assembly->length)
        return false;
    memcpy(assembly->bytes + assembly->length, part, length);
    assembly->length += length;
    return true;
}
