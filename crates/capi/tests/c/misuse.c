/* Every function with every misuse: an error, no change, no crash. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <pageset.h>

static pageset_pool *make(void) {
    pageset_config config;
    pageset_pool *pool;
    assert(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = (size_t)64 << 20;
    assert(pageset_create(&config, &pool) == 0);
    return pool;
}

/* A handle that names no pool. */
static void bad_handle(pageset_pool *pool) {
    char text[16];
    void *page = text;
    size_t count;
    uint64_t bytes;
    int number;
    pageset_stats stats;
    pageset_backing backing;
    pageset_node node;
    assert(pageset_alloc(pool, 0, &page) == EBADF && page == text);
    assert(pageset_alloc_zeroed(pool, 0, &page) == EBADF);
    assert(pageset_alloc_exact(pool, 3, &page) == EBADF);
    assert(pageset_alloc_at(pool, 0, 0, &page) == EBADF);
    assert(pageset_alloc_bulk(pool, 1, &page, &count) == EBADF && count == 0);
    assert(pageset_free(pool, page, 0) == EBADF);
    assert(pageset_free_exact(pool, page, 1) == EBADF);
    assert(pageset_free_bulk(pool, 1, &page, &count) == EBADF && count == 0);
    assert(pageset_shrink(pool, page, 2, 0, 1, &page) == EBADF);
    assert(pageset_populate(pool, 4096, 1, NULL, NULL, &count) == EBADF && count == 0);
    assert(pageset_trim(pool, &bytes) == EBADF);
    assert(pageset_tick(pool, &bytes, &number) == EBADF);
    assert(pageset_resize(pool, 0, &count) == EBADF);
    assert(pageset_validate(pool) == EBADF);
    assert(pageset_get_stats(pool, &stats, sizeof stats) == EBADF);
    assert(pageset_get_counter(pool, "refills", &bytes) == EBADF);
    assert(pageset_get_backing(pool, &backing, sizeof backing) == EBADF);
    assert(pageset_get_nodes(pool, &node, 1, &count) == EBADF);
    assert(pageset_get_page_count(pool, &count) == EBADF);
    assert(pageset_get_start(pool, &page) == EBADF);
    assert(pageset_get_memfd(pool, &number) == EBADF);
    assert(pageset_get_uses_rseq(pool, &number) == EBADF);
    assert(pageset_destroy(pool) == EBADF);
    assert(strstr(pageset_message(), "no such pool"));
}

int main(void) {
    pageset_pool *pool = make();
    void *page, *other;
    assert(pageset_alloc(pool, 0, &page) == 0);
    memset(page, 1, 4096);
    assert(pageset_destroy(pool) == EBUSY);
    assert(pageset_free(pool, page, 1) == EINVAL);
    assert(pageset_free(pool, (char *)page + 1, 0) == EINVAL);
    assert(pageset_free(pool, NULL, 0) == EINVAL);
    assert(pageset_free(pool, &other, 0) == EINVAL);
    assert(pageset_free(pool, page, 0) == 0);
    assert(pageset_free(pool, page, 0) == EINVAL);
    assert(pageset_alloc(pool, 11, &page) == EINVAL);
    assert(pageset_alloc(pool, 0, NULL) == EINVAL);
    assert(pageset_validate(pool) == 0);
    assert(pageset_destroy(pool) == 0);
    bad_handle(pool);
    bad_handle(NULL);
    bad_handle((pageset_pool *)(void *)&page);
    bad_handle((pageset_pool *)~(uintptr_t)0);
    bad_handle((pageset_pool *)(uintptr_t)1);
    return 0;
}
