/* Cyclone's configuration, made from a peer's arguments. */
#ifndef DOMAIN_H
#define DOMAIN_H

#include <stddef.h>

#include "peer.h"

/* Writes the configuration as XML; 0, or -1 if it does not fit. */
int domain_configuration(const struct peer_arguments *arguments, bool receiver, char *text, size_t room);

#endif
