/* Programs for a memory checker. The memory checker must accept the correct programs, and find the errors of
 * the wrong programs. */
#include <pthread.h>

#include "make_pool.h"

static pageset_pool *pool;

/* Passes pages between threads only through the pool. */
static void *passes(void *unused) {
    int round;
    (void)unused;
    for (round = 0; round < 20000; round++) {
        unsigned order = (unsigned)round % 4;
        char *page;
        void *pages;
        CHECK(pageset_alloc(pool, order, &pages) == 0);
        page = (char *)pages;
        page[0] = (char)round;
        page[((size_t)4096 << order) - 1] = page[0];
        CHECK(pageset_free(pool, pages, order) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    volatile char *page;
    void *pages, *rest;
    int at;
    pool = make_pool();
    for (at = 0; at < 2; at++) CHECK(pthread_create(&threads[at], NULL, passes, NULL) == 0);
    for (at = 0; at < 2; at++) CHECK(pthread_join(threads[at], NULL) == 0);
    CHECK(pageset_alloc_run_zeroed(pool, 10 * MIB, &pages) == 0);
    page = (volatile char *)pages;
    page[10 * MIB - 1] = 1;
    CHECK(pageset_split(pool, pages, 2560, 5, &rest) == 0 && pageset_free_run(pool, rest) == 0);
    if (argc > 1 && strcmp(argv[1], "part") == 0) page[5 * 4096] = 1;
    page[5 * 4096 - 1] = 1;
    CHECK(pageset_discard(pool, pages, 5, NULL) == 0);
    if (argc > 1 && strcmp(argv[1], "discarded") == 0) return page[0];
    CHECK(pageset_alloc_zeroed(pool, 9, &pages) == 0);
    page = (volatile char *)pages;
    for (at = 0; at < (int)(2 * MIB); at++) CHECK(page[at] == 0);
    CHECK(pageset_free(pool, pages, 9) == 0);
    CHECK(pageset_alloc_at(pool, 512, 3, &pages) == 0);
    page = (volatile char *)pages;
    if (argc > 1 && strcmp(argv[1], "undefined") == 0 && page[7] == 1) return 1;
    page[0] = 1;
    CHECK(pageset_free(pool, pages, 3) == 0);
    if (argc > 1 && strcmp(argv[1], "freed") == 0) return page[0];
    CHECK(pageset_destroy(pool) == 0);
    return 0;
}
