/* Uses each function of the pool correctly. */
#define _DEFAULT_SOURCE
#include <stddef.h>
#include <sys/mman.h>

#include "make_pool.h"

/* Bytes that are not zero. */
static size_t set_bytes(const void *pages, size_t bytes) {
    const unsigned char *at = (const unsigned char *)pages;
    size_t count = 0;
    while (bytes-- > 0) count += at[bytes] != 0;
    return count;
}

static void blocks(pageset_pool *pool) {
    void *page, *kept, *pages[700];
    size_t count = 0, freed = 0;
    unsigned order;
    for (order = 0; order <= 10; order++) {
        CHECK(pageset_alloc(pool, order, &page) == 0);
        CHECK((uintptr_t)page % ((uintptr_t)4096 << order) == 0);
        memset(page, 1, (size_t)4096 << order);
        CHECK(pageset_free(pool, page, order) == 0);
        CHECK(pageset_alloc_zeroed(pool, order, &page) == 0);
        CHECK(set_bytes(page, (size_t)4096 << order) == 0);
        CHECK(pageset_free_exact(pool, page, (size_t)1 << order) == 0);
    }
    CHECK(pageset_alloc_exact(pool, 5, &page) == 0 && (uintptr_t)page % 32768 == 0);
    memset(page, 1, 5 * 4096);
    CHECK(pageset_shrink(pool, page, 5, 1, 3, &kept) == 0);
    CHECK(kept == (char *)page + 4096 && set_bytes(kept, 3 * 4096) == 3 * 4096);
    CHECK(pageset_free_exact(pool, page, 5) == EINVAL);
    CHECK(pageset_shrink(pool, kept, 3, 0, 2, NULL) == 0);
    /* The two pages are a block only if they are aligned. */
    CHECK(pageset_free(pool, kept, 1) == 0 || pageset_free_exact(pool, kept, 2) == 0);
    CHECK(pageset_alloc_at(pool, 4096, 9, &page) == 0);
    CHECK(pageset_alloc_at(pool, 4096, 0, &kept) == EBUSY);
    CHECK(pageset_get_start(pool, &kept) == 0 && (char *)page == (char *)kept + 4096 * 4096);
    CHECK(pageset_free(pool, page, 9) == 0);
    CHECK(pageset_alloc_bulk(pool, 700, pages, &count) == 0 && count == 700);
    CHECK(pageset_free_bulk(pool, count, pages, &freed) == 0 && freed == 700);
}

/* Frees pages as a program does that keeps only a pointer. */
static void release(void *pages) {
    pageset_pool *pool;
    CHECK(pageset_find(pages, &pool, NULL) == 0);
    CHECK(pageset_free_run(pool, pages) == 0);
}

/* Allocates runs of many sizes, splits them, and frees them by a pointer alone. */
static void runs(pageset_pool *pool) {
    pageset_pool *found, *other = make_pool();
    pageset_stats stats;
    char *run;
    void *rest, *inner;
    size_t bytes, all;
    CHECK(pageset_get_page_count(pool, &all) == 0);
    for (bytes = 1; bytes <= all * 4096; bytes = bytes * 3 + 4095) {
        CHECK(pageset_alloc_run_zeroed(pool, bytes, &rest) == 0);
        run = (char *)rest;
        CHECK(set_bytes(run, bytes) == 0);
        memset(run, 1, bytes);
        bytes = (bytes + 4095) / 4096 * 4096;
        CHECK(pageset_find(run, &found, &all) == 0 && found == pool && all == bytes);
        CHECK(pageset_find(run + 4096, &found, &all) == EINVAL && found == NULL && all == 0);
        CHECK(pageset_find(run + 8192, NULL, NULL) == EINVAL && pageset_find(run + 1, NULL, NULL) == EINVAL);
        CHECK(pageset_free_run(other, run) == EINVAL);
        release(run);
        CHECK(pageset_free_run(pool, run) == EINVAL);
        CHECK(pageset_get_page_count(pool, &all) == 0);
    }
    for (bytes = 4096; bytes <= (size_t)16 << 20; bytes *= 2) {
        CHECK(pageset_alloc_run_aligned(pool, 5 << 20, bytes, &rest) == 0 && (size_t)rest % bytes == 0);
        CHECK(pageset_alloc_run_aligned_zeroed(pool, 3 * 4096, bytes, &inner) == 0 && (size_t)inner % bytes == 0);
        CHECK(set_bytes((char *)inner, 3 * 4096) == 0);
        memset(rest, 1, 5 << 20);
        memset(inner, 1, 3 * 4096);
        CHECK(pageset_find(rest, NULL, &all) == 0 && all == 5 << 20);
        CHECK(pageset_free_exact(pool, rest, (5 << 20) / 4096) == 0 && pageset_free_exact(pool, inner, 3) == 0);
    }
    CHECK(pageset_find(&bytes, &found, &bytes) == EINVAL && bytes == 0);
    CHECK(pageset_find(NULL, &found, NULL) == EINVAL);
    /* Use the calls as a balloon does. */
    CHECK(pageset_alloc_exact(pool, 10000, &rest) == 0);
    run = (char *)rest;
    memset(run, 1, 10000 * 4096);
    CHECK(pageset_give_back(pool, run, 10000, 700, 2, &bytes) == 0 && bytes == 8192);
    CHECK(run[700 * 4096 - 1] == 1 && set_bytes(run + 700 * 4096, 8192) == 0 && run[702 * 4096] == 1);
    CHECK(pageset_give_back(pool, run, 10000, 10000, 0, &bytes) == 0 && bytes == 0);
    CHECK(pageset_split(pool, run, 10000, 5000, &inner) == 0 && (char *)inner == run + 5000 * 4096);
    CHECK(pageset_split(pool, inner, 5000, 1, &rest) == 0 && (char *)rest == run + 5001 * 4096);
    CHECK(pageset_free_exact(pool, run, 10000) == EINVAL);
    CHECK(pageset_join(pool, run, 5000, 4999) == EINVAL && pageset_join(pool, run, 4999, 1) == EINVAL);
    CHECK(pageset_join(pool, inner, 1, 4999) == 0 && pageset_join(pool, run, 5000, 5000) == 0);
    CHECK(pageset_find(run, NULL, &all) == 0 && all == 10000 * 4096 && pageset_find(inner, NULL, &all) == EINVAL);
    CHECK(pageset_split(pool, run, 10000, 512, &rest) == 0 && pageset_split(pool, run, 512, 3, &inner) == 0);
    CHECK(pageset_join(pool, run, 3, 509) == 0 && pageset_join(pool, run, 512, 9488) == 0);
    CHECK(pageset_split(pool, run, 10000, 5000, &inner) == 0 && pageset_split(pool, inner, 5000, 1, &rest) == 0);
    CHECK(pageset_discard(pool, inner, 1, &bytes) == 0 && bytes == 4096);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0 && stats.nr_used == 9999);
    CHECK(pageset_shrink(pool, rest, 4999, 1000, 3000, &inner) == 0);
    CHECK(set_bytes(inner, 3000 * 4096) == 3000 * 4096);
    release(run);
    CHECK(pageset_free_exact(pool, inner, 3000) == 0);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0 && stats.nr_used == 0 && stats.bad_frees == 0);
    CHECK(pageset_alloc(other, 3, &inner) == 0);
    CHECK(pageset_find(inner, &found, &bytes) == 0 && found == other && bytes == 8 * 4096);
    release(inner);
    CHECK(pageset_destroy(other) == 0);
}

/* Changes settings after the pool was made. */
static void changes(void) {
    pageset_config config;
    pageset_pool *pool;
    uint64_t bytes;
    void *page;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.worker = PAGESET_WORKER_NONE;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_alloc(pool, 9, &page) == 0);
    memset(page, 1, 2 * MIB);
    CHECK(pageset_free(pool, page, 9) == 0);
    CHECK(pageset_set_pinned(pool, 2) == EINVAL && pageset_set_pinned(pool, 1) == 0);
    CHECK(pageset_trim(pool, &bytes) == 0 && bytes == 0);
    CHECK(pageset_set_pinned(pool, 0) == 0);
    CHECK(pageset_trim(pool, &bytes) == 0 && bytes > 0);
    config.part_bytes = 4096;
    CHECK(pageset_set_returns(pool, &config) == 0);
    config.return_interval_ns = 0;
    CHECK(pageset_set_returns(pool, &config) == EINVAL && pageset_set_returns(pool, NULL) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

/* A cache that evicts its newest block. */
struct cache {
    pageset_pool *pool;
    void *blocks[8];
    size_t count, calls, wanted;
};

static int evict(void *context, size_t bytes) {
    struct cache *cache = (struct cache *)context;
    pageset_stats stats;
    CHECK(pageset_get_stats(cache->pool, &stats, sizeof stats) == 0);
    cache->wanted = bytes;
    cache->calls++;
    if (cache->count == 0) return 0;
    CHECK(pageset_free(cache->pool, cache->blocks[--cache->count], 9) == 0);
    return 1;
}

static void evicts(void) {
    pageset_config config;
    struct cache cache = {0};
    static void *pages[1400];
    void *block;
    size_t got;
    int round;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 64 * MIB;
    config.capacity_bytes = 4 * MIB;
    config.on_shortage = evict;
    config.shortage_context = &cache;
    CHECK(pageset_create(&config, &cache.pool) == 0);
    for (round = 0; round < 5; round++) {
        CHECK(pageset_alloc(cache.pool, 9, &block) == 0);
        cache.blocks[cache.count++] = block;
        CHECK(cache.count <= 2);
    }
    CHECK(cache.calls == 3 && cache.wanted == 2 * MIB);
    /* A bulk allocation asks the program for the missing bytes. */
    CHECK(pageset_alloc_bulk(cache.pool, 700, pages, &got) == 0 && got == 700);
    CHECK(cache.calls == 5 && cache.count == 0 && cache.wanted == (700 - 512) * 4096);
    CHECK(pageset_alloc_bulk(cache.pool, 700, pages + 700, &got) == 0 && got == 324);
    CHECK(cache.calls == 6 && cache.wanted == (700 - 324) * 4096);
    CHECK(pageset_free_bulk(cache.pool, 1024, pages, &got) == 0 && got == 1024);
    CHECK(pageset_alloc(cache.pool, 9, &block) == 0);
    cache.blocks[cache.count++] = block;
    CHECK(pageset_alloc(cache.pool, 9, &block) == 0);
    cache.blocks[cache.count++] = block;
    cache.calls = 3;
    /* With a larger capacity, the pool does not ask the program for pages. */
    CHECK(pageset_set_capacity(cache.pool, 6 * MIB) == 0);
    CHECK(pageset_alloc(cache.pool, 9, &block) == 0 && cache.calls == 3);
    CHECK(pageset_free(cache.pool, block, 9) == 0);
    while (cache.count > 0) CHECK(evict(&cache, 2 * MIB) == 1);
    CHECK(pageset_destroy(cache.pool) == 0);
}

/* Allocates 1 GiB, in pages of 1 GiB where the system has some. The test touches no page, so it needs no
 * memory. */
static void gib(void) {
    pageset_config config;
    pageset_backing backing;
    pageset_pool *pool;
    void *start, *first, *second;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 2048 * MIB;
    config.backing = PAGESET_BACKING_HUGETLB_OR_THP;
    config.huge_page_bytes = 1024 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0);
    CHECK(backing.asked == PAGESET_BACKING_HUGETLB_OR_THP);
    CHECK(backing.page_bytes == 4096 || backing.page_bytes == 1024 * MIB);
    CHECK(pageset_alloc_gib(pool, &first) == 0 && pageset_alloc_gib(pool, &second) == 0);
    CHECK(pageset_get_start(pool, &start) == 0);
    CHECK(first == start && (char *)second == (char *)first + 1024 * MIB);
    CHECK(pageset_alloc_gib(pool, &start) == ENOMEM && pageset_alloc_gib(pool, NULL) == EINVAL);
    CHECK(pageset_free_run(pool, first) == 0 && pageset_free_run(pool, second) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

/* Allocates until no page is left, and then tries to allocate more. */
static void shortage(void) {
    static void *pages[5000];
    pageset_config config;
    pageset_pool *pool;
    size_t count;
    void *page;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_alloc_bulk(pool, 5000, pages, &count) == 0 && count == 4096);
    CHECK(pageset_alloc(pool, 0, &page) == ENOMEM);
    CHECK(strstr(pageset_message(), "no free block of order 0"));
    CHECK(pageset_alloc_bulk(pool, 1, &page, &count) == ENOMEM && count == 0);
    CHECK(pageset_alloc_exact(pool, 3, &page) == ENOMEM);
    CHECK(pageset_free_bulk(pool, 4096, pages, &count) == 0 && count == 4096);
    CHECK(pageset_destroy(pool) == 0);
    config.capacity_bytes = 8 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_alloc_bulk(pool, 5000, pages, &count) == 0 && count == 2048);
    CHECK(pageset_alloc_zeroed(pool, 0, &page) == EDQUOT);
    CHECK(pageset_free_bulk(pool, count, pages, NULL) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

struct progress {
    size_t calls, done_bytes, end_after;
};

static int note(void *context, size_t done_bytes, size_t total_bytes) {
    struct progress *progress = (struct progress *)context;
    CHECK(total_bytes == 64 * MIB && done_bytes > progress->done_bytes);
    progress->done_bytes = done_bytes;
    return ++progress->calls == progress->end_after;
}

static void memory(pageset_pool *pool) {
    struct progress progress = {0, 0, 0};
    pageset_backing backing;
    pageset_node nodes[64];
    size_t done, in_service, count, node;
    uint64_t bytes, resident = 0;
    int more;
    CHECK(pageset_populate(pool, 64 * MIB, 2, note, &progress, &done) == 0);
    CHECK(progress.calls == 2 && done == 64 * MIB);
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0);
    CHECK(backing.struct_bytes == sizeof backing && backing.version == 1 && backing.asked == PAGESET_BACKING_THP);
    CHECK(backing.mapped_bytes == 64 * MIB && backing.resident_bytes == 64 * MIB);
    CHECK(backing.huge_bytes + backing.small_bytes == backing.resident_bytes && backing.page_bytes == 4096);
    CHECK(pageset_get_nodes(pool, nodes, 64, &count) == 0 && count <= 64);
    for (node = 0; node < count; node++) resident += nodes[node].resident_bytes;
    CHECK(count == 0 || resident == 64 * MIB);
    CHECK(pageset_trim(pool, &bytes) == 0 && bytes >= 60 * MIB);
    progress.calls = progress.done_bytes = 0;
    progress.end_after = 1;
    CHECK(pageset_populate(pool, 64 * MIB, 1, note, &progress, &done) == ECANCELED && done == 32 * MIB);
    CHECK(pageset_tick(pool, &bytes, &more) == 0 && (more == 0 || more == 1));
    CHECK(pageset_resize(pool, 32 * MIB, &in_service) == 0 && in_service == 32 * MIB);
    CHECK(pageset_resize(pool, 128 * MIB, &in_service) == 0 && in_service == 64 * MIB);
}

static void statistics(pageset_pool *pool) {
    pageset_stats stats, part;
    uint64_t claimed;
    size_t pages;
    void *page;
    unsigned int order;
    int uses_rseq;
    const size_t part_bytes = offsetof(pageset_stats, pgfree);
    CHECK(pageset_alloc(pool, 4, &page) == 0);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0);
    CHECK(stats.struct_bytes == sizeof stats && stats.version == 1 && stats.largest_free_order == 10);
    CHECK(stats.nr_used == 16 && stats.pgalloc - stats.pgfree == 16 && stats.capacity_pages == 16384);
    CHECK(stats.bad_frees == 0 && stats.metadata_bytes > 0 && stats.array_drains_refused == 0);
    CHECK(pageset_free(pool, page, 4) == 0);
    /* Simulate a program that is older than the library: the library must write nothing behind the
     * program's struct. */
    memset(&part, 0x55, sizeof part);
    CHECK(pageset_get_stats(pool, &part, part_bytes) == 0);
    CHECK(part.struct_bytes == part_bytes && part.pgalloc == stats.pgalloc && part.pgfree == 0x5555555555555555u);
    CHECK(pageset_get_stats(pool, &part, 3) == EINVAL);
    CHECK(pageset_get_counter(pool, "claimed", &claimed) == 0 && claimed > 0);
    CHECK(pageset_get_page_count(pool, &pages) == 0 && pages == 16384);
    CHECK(pageset_get_uses_rseq(pool, &uses_rseq) == 0 && (uses_rseq == 0 || uses_rseq == 1));
    CHECK(pageset_order_for_bytes(1, &order) == 0 && order == 0);
    CHECK(pageset_order_for_bytes(PAGESET_PAGE_BYTES + 1, &order) == 0 && order == 1);
    CHECK(pageset_order_for_bytes((size_t)4 << 20, &order) == 0 && order == PAGESET_MAX_ORDER);
    CHECK(pageset_order_for_bytes(0, &order) == EINVAL && strstr(pageset_message(), "4 MiB"));
    CHECK(pageset_order_for_bytes(((size_t)4 << 20) + 1, &order) == EINVAL);
    CHECK(pageset_order_for_bytes(1, NULL) == EINVAL);
    CHECK(strcmp(pageset_version(), "0.1.0") == 0);
}

/* Maps a page a second time through the pool's file. */
static void file(void) {
    pageset_config config;
    pageset_pool *pool;
    void *page, *start;
    char *seen;
    int memfd;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.backing = PAGESET_BACKING_MEMFD;
    config.worker = PAGESET_WORKER_NONE;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_get_memfd(pool, &memfd) == 0);
    CHECK(pageset_get_start(pool, &start) == 0);
    CHECK(pageset_alloc(pool, 0, &page) == 0);
    seen = (char *)mmap(NULL, 16 * MIB, PROT_READ, MAP_SHARED, memfd, 0);
    CHECK(seen != MAP_FAILED);
    strcpy((char *)page, "hello");
    CHECK(strcmp(seen + ((char *)page - (char *)start), "hello") == 0);
    CHECK(munmap(seen, 16 * MIB) == 0);
    CHECK(pageset_free(pool, page, 0) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

/* Replaces small pages by as many huge pages as the system provides. */
static void collapse(void) {
    pageset_config config;
    pageset_pool *pool;
    pageset_backing backing;
    uint64_t huge_bytes = 1;
    void *page;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.backing = PAGESET_BACKING_MEMFD;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_alloc(pool, 0, &page) == 0);
    memset(page, 7, 4096);
    CHECK(pageset_collapse(pool, &huge_bytes) == 0 && (huge_bytes == 0 || huge_bytes == 2 * MIB));
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0 && backing.huge_bytes == huge_bytes);
    CHECK(*(char *)page == 7 && pageset_collapse(pool, NULL) == 0);
    CHECK(pageset_free(pool, page, 0) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

/* Makes a pool on the program's own memory. */
static void region(void) {
    pageset_config config;
    pageset_pool *pool;
    char *memory = (char *)mmap(NULL, 20 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *aligned = memory + (-(uintptr_t)memory & (4 * MIB - 1));
    void *page;
    CHECK(memory != MAP_FAILED);
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.region = aligned;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_alloc(pool, 0, &page) == 0);
    CHECK((char *)page >= aligned && (char *)page < aligned + 16 * MIB);
    CHECK(pageset_free(pool, page, 0) == 0);
    CHECK(pageset_destroy(pool) == 0);
    CHECK(munmap(memory, 20 * MIB) == 0);
}

/* Simulates a program with a shorter config. Each option differs from the default. */
static void configs(void) {
    pageset_config config;
    pageset_pool *pool;
    void *page;
    int uses_rseq;
    CHECK(pageset_config_init(&config, offsetof(pageset_config, region)) == 0);
    CHECK(config.struct_bytes == offsetof(pageset_config, region));
    config.bytes = 4 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.backing = PAGESET_BACKING_PLAIN;
    config.numa = PAGESET_NUMA_INTERLEAVE;
    config.numa_nodes = 1;
    config.fork = PAGESET_FORK_HIDE;
    config.residency = PAGESET_RESIDENCY_PAGEABLE;
    config.fast_path = PAGESET_FAST_PATH_LOCKS;
    config.worker = PAGESET_WORKER_NONE;
    config.keep_bytes = 0;
    config.prezero_blocks = 1;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_get_uses_rseq(pool, &uses_rseq) == 0 && uses_rseq == 0);
    CHECK(pageset_alloc(pool, 0, &page) == 0);
    CHECK(pageset_free(pool, page, 1) == EINVAL);
    CHECK(pageset_free(pool, page, 0) == 0);
    CHECK(pageset_free(pool, page, 0) == EINVAL);
    CHECK(pageset_destroy(pool) == 0);
    CHECK(pageset_create(NULL, &pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
}

/* A program registers a whole pool with a device. Each address must keep its page during all calls. */
static void pinned(void) {
    static void *pages[8];
    pageset_config config;
    pageset_pool *pool;
    pageset_backing backing;
    uint64_t bytes, resident;
    size_t index, in_service;
    int round;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    CHECK(config.pinned == 0);
    config.bytes = 16 * MIB;
    config.worker = PAGESET_WORKER_NONE;
    config.pinned = 1;
    CHECK(pageset_create(&config, &pool) == 0);
    for (index = 0; index < 8; index++) {
        CHECK(pageset_alloc(pool, 9, &pages[index]) == 0);
        memset(pages[index], 1, 2 * MIB);
    }
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0);
    resident = backing.resident_bytes;
    CHECK(resident == 16 * MIB);
    for (index = 0; index < 8; index++) CHECK(pageset_free(pool, pages[index], 9) == 0);
    for (round = 0; round < 25; round++) CHECK(pageset_tick(pool, &bytes, NULL) == 0 && bytes == 0);
    CHECK(pageset_trim(pool, &bytes) == 0 && bytes == 0);
    CHECK(pageset_resize(pool, 4 * MIB, &in_service) == 0 && in_service == 4 * MIB);
    CHECK(pageset_resize(pool, 16 * MIB, &in_service) == 0 && in_service == 16 * MIB);
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0 && backing.resident_bytes == resident);
    CHECK(pageset_destroy(pool) == 0);
}

/* Makes more pools than the library allows at a time. */
static void many(void) {
    static pageset_pool *pools[4097];
    pageset_config config;
    size_t made = 0;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 4096;
    config.worker = PAGESET_WORKER_NONE;
    config.fast_path = PAGESET_FAST_PATH_LOCKS;
    while (made < 300) CHECK(pageset_create(&config, &pools[made++]) == 0);
    while (made > 0) CHECK(pageset_destroy(pools[--made]) == 0);
}

int main(void) {
    pageset_pool *pool = make_pool();
    CHECK(strcmp(pageset_message(), "") == 0);
    blocks(pool);
    runs(pool);
    changes();
    evicts();
    statistics(pool);
    memory(pool);
    CHECK(pageset_validate(pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    gib();
    shortage();
    file();
    collapse();
    region();
    configs();
    pinned();
    many();
    return 0;
}
