/* Puts messages together that the library hands over in parts. */
#ifndef ASSEMBLY_H
#define ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that is being put together: one for each stream of each association. */
struct assembly {
    uint32_t association;
    uint16_t stream;
    uint8_t *bytes;
    size_t length;
    struct assembly *next;
};

/* The assembly of a stream, made when it is first asked for; NULL if there is no memory. Called by one
 * thread at a time. */
struct assembly *assembly_of(uint32_t association, uint16_t stream, size_t max_size);

/* Adds a part; false if the message grows beyond `max_size`. */
bool assembly_add(struct assembly *assembly, const void *part, size_t length, size_t max_size);

#endif
