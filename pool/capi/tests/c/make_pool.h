/* A pool of 64 MiB. */
#ifndef MAKE_POOL_H
#define MAKE_POOL_H

#include "check.h"

static pageset_pool *make_pool(void) {
    pageset_config config;
    pageset_pool *pool;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 64 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    return pool;
}

#endif
