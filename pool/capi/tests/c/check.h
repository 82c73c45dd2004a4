/* A check for all tests in C. If the check fails, CHECK prints its place in the source. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pageset.h>

#define CHECK(condition) \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s (last message: %s)\n", __FILE__, __LINE__, #condition, pageset_message()), \
                    exit(1)))

#define MIB ((size_t)1 << 20)

#endif
