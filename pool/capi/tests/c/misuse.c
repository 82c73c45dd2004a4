/* Calls every function in each wrong way. Each call must return an error, change nothing, and not crash. */
#include "make_pool.h"

/* A handle that names no pool. */
static void wrong_handle(pageset_pool *pool) {
    char text[16];
    void *page = text;
    size_t count = 7;
    uint64_t bytes;
    int number;
    pageset_stats stats;
    pageset_backing backing;
    pageset_node node;
    CHECK(pageset_alloc(pool, 0, &page) == EBADF && page == text);
    CHECK(pageset_alloc_zeroed(pool, 0, &page) == EBADF && page == text);
    CHECK(pageset_alloc_exact(pool, 3, &page) == EBADF && page == text);
    CHECK(pageset_alloc_run(pool, 3, &page) == EBADF && page == text);
    CHECK(pageset_alloc_run_zeroed(pool, 3, &page) == EBADF && page == text);
    CHECK(pageset_free_run(pool, page) == EBADF);
    CHECK(pageset_discard(pool, page, 1, &count) == EBADF);
    CHECK(pageset_split(pool, page, 2, 1, &page) == EBADF && page == text);
    CHECK(pageset_alloc_at(pool, 0, 0, &page) == EBADF && page == text);
    CHECK(pageset_alloc_bulk(pool, 1, &page, &count) == EBADF && count == 0);
    CHECK(pageset_free(pool, page, 0) == EBADF);
    CHECK(pageset_free_exact(pool, page, 1) == EBADF);
    CHECK(pageset_free_bulk(pool, 1, &page, &count) == EBADF && count == 0);
    CHECK(pageset_shrink(pool, page, 2, 0, 1, &page) == EBADF);
    CHECK(pageset_populate(pool, 4096, 1, NULL, NULL, &count) == EBADF && count == 0);
    CHECK(pageset_collapse(pool, &bytes) == EBADF);
    CHECK(pageset_take_over(pool, 0) == EBADF);
    CHECK(pageset_trim(pool, &bytes) == EBADF);
    CHECK(pageset_tick(pool, &bytes, &number) == EBADF);
    CHECK(pageset_resize(pool, 0, &count) == EBADF);
    CHECK(pageset_set_capacity(pool, 1) == EBADF);
    CHECK(pageset_set_returns(pool, NULL) == EBADF && pageset_set_pinned(pool, 1) == EBADF);
    CHECK(pageset_validate(pool) == EBADF);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == EBADF);
    CHECK(pageset_get_counter(pool, "claimed", &bytes) == EBADF);
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == EBADF);
    CHECK(pageset_get_nodes(pool, &node, 1, &count) == EBADF);
    CHECK(pageset_get_page_count(pool, &count) == EBADF);
    CHECK(pageset_get_start(pool, &page) == EBADF);
    CHECK(pageset_get_memfd(pool, &number) == EBADF);
    CHECK(pageset_get_uses_rseq(pool, &number) == EBADF);
    CHECK(pageset_destroy(pool) == EBADF);
    CHECK(strstr(pageset_message(), "no such pool"));
}

/* Passes NULL for results, arrays and names. */
static void null_pointers(pageset_pool *pool) {
    size_t count = 7;
    uint64_t bytes;
    void *page;
    CHECK(pageset_config_init(NULL, sizeof(pageset_config)) == EINVAL);
    CHECK(pageset_create(NULL, NULL) == EINVAL);
    CHECK(pageset_alloc(pool, 0, NULL) == EINVAL);
    CHECK(pageset_alloc_zeroed(pool, 0, NULL) == EINVAL);
    CHECK(pageset_alloc_exact(pool, 3, NULL) == EINVAL);
    CHECK(pageset_alloc_at(pool, 0, 0, NULL) == EINVAL);
    CHECK(pageset_alloc_bulk(pool, 1, NULL, &count) == EINVAL && count == 0);
    CHECK(pageset_alloc_bulk(pool, 1, &page, NULL) == EINVAL);
    CHECK(pageset_alloc_bulk(pool, (size_t)-1, &page, &count) == EINVAL && count == 0);
    CHECK(pageset_free_bulk(pool, 1, NULL, &count) == EINVAL && count == 0);
    CHECK(pageset_free_bulk(pool, (size_t)-1, &page, NULL) == EINVAL);
    CHECK(pageset_get_stats(pool, NULL, sizeof(pageset_stats)) == EINVAL);
    CHECK(pageset_get_backing(pool, NULL, sizeof(pageset_backing)) == EINVAL);
    CHECK(pageset_get_counter(pool, NULL, &bytes) == EINVAL);
    CHECK(pageset_get_counter(pool, "claimed", NULL) == EINVAL);
    CHECK(pageset_get_counter(pool, "no such", &bytes) == ENOENT);
    CHECK(pageset_get_nodes(pool, NULL, 1, &count) == EINVAL);
    CHECK(pageset_get_nodes(pool, NULL, 0, NULL) == EINVAL);
    CHECK(pageset_get_page_count(pool, NULL) == EINVAL);
    CHECK(pageset_get_start(pool, NULL) == EINVAL);
    CHECK(pageset_get_memfd(pool, NULL) == EINVAL);
    CHECK(pageset_get_uses_rseq(pool, NULL) == EINVAL);
    /* For these results, the header allows NULL. */
    CHECK(pageset_alloc_bulk(pool, 0, NULL, &count) == 0 && count == 0);
    CHECK(pageset_free_bulk(pool, 0, NULL, NULL) == 0);
    CHECK(pageset_trim(pool, NULL) == 0);
    CHECK(pageset_tick(pool, NULL, NULL) == 0);
    CHECK(pageset_resize(pool, 64 * MIB, NULL) == 0);
    CHECK(pageset_populate(pool, 0, 1, NULL, NULL, NULL) == 0);
}

/* Passes pages that the library cannot free. Pages in use must stay in use, and no page may be freed twice. */
static void wrong_pages(pageset_pool *pool, unsigned order) {
    void *page, *kept = NULL;
    size_t count = (size_t)1 << order, freed = 7;
    unsigned other;
    int local;
    pageset_stats stats;
    CHECK(pageset_alloc(pool, order, &page) == 0);
    for (other = 0; other < 40; other++) {
        if (other != order) CHECK(pageset_free(pool, page, other) == EINVAL);
    }
    CHECK(pageset_free(pool, page, ~0u) == EINVAL);
    CHECK(pageset_free(pool, page, order | 0x8000) == EINVAL);
    CHECK(pageset_free(pool, NULL, order) == EINVAL);
    CHECK(pageset_free(pool, &local, order) == EINVAL);
    CHECK(pageset_free(pool, (char *)page + 1, order) == EINVAL);
    CHECK(pageset_free(pool, (char *)page - 4096, order) == EINVAL);
    CHECK(pageset_free(pool, (char *)page + 4096 * count, order) == EINVAL);
    CHECK(order == 0 || pageset_free(pool, (char *)page + 4096 * (count / 2), order - 1) == EINVAL);
    CHECK(pageset_free(pool, (void *)~(uintptr_t)0, order) == EINVAL);
    CHECK(pageset_free_exact(pool, page, count + 1) == EINVAL);
    CHECK(pageset_free_exact(pool, page, 0) == EINVAL);
    CHECK(pageset_free_exact(pool, page, (size_t)-1) == EINVAL);
    CHECK(pageset_free_exact(pool, page, count + 65536) == EINVAL);
    CHECK(pageset_free_exact(pool, &local, count) == EINVAL);
    CHECK(pageset_shrink(pool, page, count, 0, 0, &kept) == EINVAL);
    CHECK(pageset_shrink(pool, page, count, 0, count + 1, &kept) == EINVAL);
    CHECK(pageset_shrink(pool, page, count, count, 1, &kept) == EINVAL);
    CHECK(pageset_shrink(pool, page, count, (size_t)-1, 2, &kept) == EINVAL);
    CHECK(pageset_shrink(pool, page, count + 1, 0, 1, &kept) == EINVAL);
    CHECK(pageset_shrink(pool, NULL, count, 0, 1, &kept) == EINVAL && kept == NULL);
    CHECK(pageset_split(pool, page, count, 0, &kept) == EINVAL);
    CHECK(pageset_split(pool, page, count, count, &kept) == EINVAL);
    CHECK(pageset_split(pool, page, count + 1, 1, &kept) == EINVAL && kept == NULL);
    CHECK(pageset_discard(pool, page, count + 1, &freed) == EINVAL);
    CHECK(pageset_give_back(pool, page, count + 1, 0, 1, &freed) == EINVAL);
    CHECK(pageset_give_back(pool, page, count, count, 1, &freed) == EINVAL);
    CHECK(pageset_give_back(pool, page, count, 1, (size_t)-1, &freed) == EINVAL);
    CHECK(pageset_give_back(pool, &local, count, 0, 1, &freed) == EINVAL);
    CHECK(pageset_free_run(pool, (char *)page + 4096) == EINVAL);
    CHECK(pageset_free_run(pool, NULL) == EINVAL && pageset_free_run(pool, &local) == EINVAL);
    CHECK(pageset_destroy(pool) == EBUSY);
    CHECK(pageset_free(pool, page, order) == 0);
    CHECK(pageset_free_run(pool, page) == EINVAL);
    CHECK(pageset_find(page, NULL, NULL) == EINVAL);
    CHECK(pageset_free(pool, page, order) == EINVAL);
    CHECK(strstr(pageset_message(), "handed out"));
    CHECK(pageset_free_exact(pool, page, count) == EINVAL);
    CHECK(pageset_free_bulk(pool, 1, &page, &freed) == EINVAL && freed == 0);
    CHECK(pageset_shrink(pool, page, count, 0, 1, &kept) == EINVAL);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0 && stats.nr_used == 0 && stats.bad_frees == 0);
}

static void wrong_requests(pageset_pool *pool) {
    void *page = NULL, *pages[3];
    size_t count;
    unsigned order;
    for (order = 11; order < 80; order++) CHECK(pageset_alloc(pool, order, &page) == EINVAL);
    CHECK(pageset_alloc(pool, ~0u, &page) == EINVAL);
    CHECK(pageset_alloc_zeroed(pool, 256, &page) == EINVAL);
    CHECK(pageset_alloc_exact(pool, 0, &page) == EINVAL);
    CHECK(pageset_alloc_exact(pool, (size_t)-1, &page) == ENOMEM);
    CHECK(pageset_alloc_run(pool, 0, &page) == EINVAL && pageset_alloc_run(pool, (size_t)-1, &page) == ENOMEM);
    CHECK(pageset_alloc_run_zeroed(pool, 0, &page) == EINVAL && pageset_alloc_run(pool, 1, NULL) == EINVAL);
    CHECK(pageset_alloc_run_aligned(pool, 1, 0, &page) == EINVAL && strstr(pageset_message(), "power of two"));
    CHECK(pageset_alloc_run_aligned_zeroed(pool, 1, 12288, &page) == EINVAL);
    CHECK(pageset_alloc_run_aligned(pool, 0, 4096, &page) == EINVAL);
    CHECK(pageset_alloc_run_aligned(pool, 4096, ((size_t)-1 >> 1) + 1, &page) == ENOMEM);
    CHECK(pageset_alloc_at(pool, 1, 1, &page) == EINVAL);
    CHECK(pageset_alloc_at(pool, 16384, 0, &page) == EINVAL);
    CHECK(pageset_alloc_at(pool, (size_t)-1, 0, &page) == EINVAL);
    CHECK(pageset_populate(pool, 4096, 0, NULL, NULL, NULL) == EINVAL);
    CHECK(page == NULL);
    /* The second of three pages is wrong. The call must free the first page, and not the third page. */
    CHECK(pageset_alloc_bulk(pool, 3, pages, &count) == 0 && count == 3);
    page = pages[1];
    pages[1] = &count;
    CHECK(pageset_free_bulk(pool, 3, pages, &count) == EINVAL && count == 1);
    pages[1] = page;
    CHECK(pageset_free_bulk(pool, 2, pages + 1, &count) == 0 && count == 2);
}

static void wrong_config(void) {
    struct {
        pageset_config known;
        uint64_t unknown;
    } longer;
    pageset_config config;
    pageset_pool *pool;
    size_t field;
    /* Each of the small fields, with a value that no version knows. */
    uint32_t *fields[] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    fields[0] = &config.backing;
    fields[1] = &config.numa;
    fields[2] = &config.fork;
    fields[3] = &config.residency;
    fields[4] = &config.fast_path;
    fields[5] = &config.worker;
    fields[6] = &config.pinned;
    fields[7] = &config.version;
    for (field = 0; field < 8; field++) {
        CHECK(pageset_config_init(&config, sizeof config) == 0);
        *fields[field] = 99;
        pool = (pageset_pool *)&config;
        CHECK(pageset_create(&config, &pool) == EINVAL && pool == NULL);
        CHECK(strstr(pageset_message(), "pageset_config") && strstr(pageset_message(), "99"));
    }
#define WRONG(field, value, errno_value) \
    CHECK(pageset_config_init(&config, sizeof config) == 0); \
    config.field = value; \
    CHECK(pageset_create(&config, &pool) == errno_value && pool == NULL);
    WRONG(bytes, 0, EINVAL)
    WRONG(bytes, 4097, EINVAL)
    WRONG(bytes, (size_t)-4096, EINVAL)
    WRONG(return_interval_ns, 0, EINVAL)
    WRONG(region, &config, EINVAL)
    WRONG(struct_bytes, 0, EINVAL)
    WRONG(struct_bytes, 11, EINVAL)
    WRONG(struct_bytes, 4097, E2BIG)
    WRONG(struct_bytes, (size_t)-1, E2BIG)
    WRONG(numa, PAGESET_NUMA_BIND; config.numa_node = 1023, EINVAL)
    WRONG(numa, PAGESET_NUMA_BIND; config.numa_node = 65536, EINVAL)
    WRONG(numa, PAGESET_NUMA_INTERLEAVE, EINVAL)
    WRONG(backing, PAGESET_BACKING_HUGETLB; config.huge_page_bytes = 4096, EINVAL)
    CHECK(pageset_config_init(&config, 8) == EINVAL);
    CHECK(pageset_config_init(&config, 4097) == E2BIG);
    /* Simulate a program that is newer than the library. */
    memset(&longer, 1, sizeof longer);
    CHECK(pageset_config_init(&longer.known, sizeof longer) == 0 && longer.unknown == 0);
    longer.known.bytes = 4 * MIB;
    CHECK(pageset_create(&longer.known, &pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    longer.unknown = 1;
    CHECK(pageset_create(&longer.known, &pool) == E2BIG && pool == NULL);
}

int main(void) {
    pageset_pool *pool = make_pool(), *second;
    unsigned order;
    int local;
    void *page;
    for (order = 0; order <= 10; order++) wrong_pages(pool, order);
    wrong_requests(pool);
    null_pointers(pool);
    wrong_config();
    CHECK(pageset_get_memfd(pool, &local) == ENOTSUP);
    /* Pass pages of another pool. */
    second = make_pool();
    CHECK(pageset_alloc(second, 0, &page) == 0);
    CHECK(pageset_free(pool, page, 0) == EINVAL);
    CHECK(pageset_free(second, page, 0) == 0);
    CHECK(pageset_destroy(second) == 0);
    CHECK(pageset_validate(pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    /* Use the handle of a destroyed pool, also after other pools were made. Use handles that were never
     * valid. */
    wrong_handle(pool);
    second = make_pool();
    wrong_handle(pool);
    CHECK(pageset_destroy(second) == 0);
    wrong_handle(NULL);
    wrong_handle((pageset_pool *)(void *)&local);
    wrong_handle((pageset_pool *)(uintptr_t)0x1000);
    wrong_handle((pageset_pool *)~(uintptr_t)0);
    wrong_handle((pageset_pool *)(uintptr_t)1);
    wrong_handle((pageset_pool *)((uintptr_t)second + 1));
    return 0;
}
