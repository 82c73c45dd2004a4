/* Loops that cost.rs measures: pairs of an allocation and a free, as in a C program. */
#include <stddef.h>

#include <pageset.h>

#define HELD 256

pageset_pool *cost_pool(void) {
    pageset_config config;
    pageset_pool *pool = NULL;
    pageset_config_init(&config, sizeof config);
    config.bytes = (size_t)256 << 20;
    config.worker = PAGESET_WORKER_NONE;
    pageset_create(&config, &pool);
    return pool;
}

/* Allocates and frees one page at a time. */
int cost_pairs(pageset_pool *pool, size_t pairs) {
    int errors = 0;
    while (pairs-- > 0) {
        void *page = NULL;
        errors |= pageset_alloc(pool, 0, &page);
        errors |= pageset_free(pool, page, 0);
    }
    return errors;
}

/* Holds many pages at a time. So neither the pool's data nor the C library's table of a page is in the
 * cache. */
int cost_held(pageset_pool *pool, size_t rounds) {
    void *pages[HELD];
    int errors = 0, index;
    while (rounds-- > 0) {
        for (index = 0; index < HELD; index++) errors |= pageset_alloc(pool, 0, &pages[index]);
        for (index = 0; index < HELD; index++) errors |= pageset_free(pool, pages[index], 0);
    }
    return errors;
}

/* Allocates the same number of pages by one call. */
int cost_bulk(pageset_pool *pool, size_t rounds) {
    void *pages[HELD];
    size_t count;
    int errors = 0;
    while (rounds-- > 0) {
        errors |= pageset_alloc_bulk(pool, HELD, pages, &count);
        errors |= pageset_free_bulk(pool, count, pages, &count);
    }
    return errors;
}
