/* Memory is short: every function returns ENOMEM, or needs no memory. Nothing leaks, and the program goes on.
 * Linked with --wrap for each function of the heap, so that the n-th allocation fails, for every n. */
#define _DEFAULT_SOURCE
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
int __real_posix_memalign(void **memory, size_t align, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t align, size_t bytes);
void __wrap_free(void *memory);

/* `left` is the number of allocations that succeed before one fails, or -1 if none fails. `failed` and `live`
 * count the failed and the live allocations. */
static long left = -1, failed, live;
/* Whether all allocations after the failed allocation fail too. */
static int is_lasting;

static int is_refused(void) {
    if (left != 0) {
        left -= left > 0;
        return 0;
    }
    failed++;
    left = is_lasting ? 0 : -1;
    return 1;
}

void *__wrap_malloc(size_t bytes) {
    void *memory = is_refused() ? NULL : __real_malloc(bytes);
    live += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes) {
    void *memory = is_refused() ? NULL : __real_calloc(count, bytes);
    live += memory != NULL;
    return memory;
}

void *__wrap_realloc(void *memory, size_t bytes) {
    void *moved = is_refused() ? NULL : __real_realloc(memory, bytes);
    live += memory == NULL && moved != NULL;
    return moved;
}

int __wrap_posix_memalign(void **memory, size_t align, size_t bytes) {
    int error = is_refused() ? ENOMEM : __real_posix_memalign(memory, align, bytes);
    live += error == 0;
    return error;
}

void __wrap_free(void *memory) {
    live -= memory != NULL;
    __real_free(memory);
}

#define BLOCKS 20000
static void *blocks[BLOCKS];
static unsigned orders[BLOCKS];
static size_t held;

/* Allocates blocks of an order until there are no more. */
static int use_up(pageset_pool *pool, unsigned order) {
    int error = 0;
    while (held < BLOCKS && (error = pageset_alloc(pool, order, &blocks[held])) == 0) orders[held++] = order;
    return error == ENOMEM ? 0 : error;
}

static int use_up_all(pageset_pool *pool) {
    static const unsigned all[] = {10, 9, 5, 4, 3, 2, 1, 0};
    int error = 0;
    size_t index;
    for (index = 0; index < 8 && error == 0; index++) error = use_up(pool, all[index]);
    return error;
}

static int free_every(pageset_pool *pool, size_t step) {
    size_t index, kept = 0;
    for (index = 0; index < held; index++) {
        if (index % step == 0) {
            int error = pageset_free(pool, blocks[index], orders[index]);
            if (error) return error;
        } else {
            blocks[kept] = blocks[index];
            orders[kept++] = orders[index];
        }
    }
    held = kept;
    return 0;
}

static int free_half(pageset_pool *pool) { return free_every(pool, 2); }
static int free_all(pageset_pool *pool) { return free_every(pool, 1); }

static int others(pageset_pool *pool) {
    void *page;
    int error = pageset_alloc_zeroed(pool, 3, &page);
    if (error == 0) error = pageset_free(pool, page, 3);
    if (error == 0) error = pageset_alloc_exact(pool, 700, &page);
    if (error == 0) error = pageset_shrink(pool, page, 700, 10, 3, &page);
    if (error == 0) error = pageset_free_exact(pool, page, 3);
    if (error == 0) error = pageset_alloc_at(pool, 8192, 9, &page);
    if (error == 0) error = pageset_free(pool, page, 9);
    return error;
}

static int bulk(pageset_pool *pool) {
    static void *pages[BLOCKS];
    size_t count;
    int error = pageset_alloc_bulk(pool, BLOCKS, pages, &count);
    return error ? error : pageset_free_bulk(pool, count, pages, NULL);
}

static int trim(pageset_pool *pool) { return pageset_trim(pool, NULL); }

static int tick(pageset_pool *pool) {
    int round, error = 0;
    for (round = 0; round < 25 && error == 0; round++) error = pageset_tick(pool, NULL, NULL);
    return error;
}

static int resize(pageset_pool *pool) {
    int error = pageset_resize(pool, 0, NULL);
    return error ? error : pageset_resize(pool, 64 * MIB, NULL);
}

static int populate(pageset_pool *pool) { return pageset_populate(pool, 40 * MIB, 1, NULL, NULL, NULL); }

static int look(pageset_pool *pool) {
    pageset_stats stats;
    uint64_t counter;
    int error = pageset_get_stats(pool, &stats, sizeof stats);
    if (error == 0) error = pageset_get_counter(pool, "claimed", &counter);
    if (error == 0) error = pageset_validate(pool);
    return error;
}

static int backing(pageset_pool *pool) {
    pageset_backing backing;
    pageset_node nodes[8];
    size_t count;
    int error = pageset_get_backing(pool, &backing, sizeof backing);
    return error ? error : pageset_get_nodes(pool, nodes, 8, &count);
}

/* Makes calls that the library refuses. Each refusal must have its own message. */
static int refused(pageset_pool *pool) {
    pageset_config config;
    void *page;
    uint64_t counter;
    CHECK(pageset_free(pool, &config, 0) == EINVAL && strstr(pageset_message(), "not a page"));
    CHECK(pageset_free(pool, NULL, 0) == EINVAL && strstr(pageset_message(), "NULL"));
    CHECK(pageset_alloc(pool, 11, &page) == EINVAL && strstr(pageset_message(), "order"));
    CHECK(pageset_alloc(NULL, 0, &page) == EBADF && strstr(pageset_message(), "no such pool"));
    CHECK(pageset_get_counter(pool, "none", &counter) == ENOENT && strstr(pageset_message(), "none"));
    CHECK(pageset_config_init(&config, 1) == EINVAL && strstr(pageset_message(), "struct_bytes"));
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.fork = 99;
    CHECK(pageset_create(&config, &pool) == EINVAL && strstr(pageset_message(), "99"));
    return 0;
}

static pageset_config without_thread(uint32_t fast_path) {
    pageset_config config;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 64 * MIB;
    config.worker = PAGESET_WORKER_NONE;
    config.fast_path = fast_path;
    return config;
}

/* Makes and destroys a pool. */
static int create(pageset_pool *unused) {
    uint32_t fast_path;
    (void)unused;
    for (fast_path = 0; fast_path < 2; fast_path++) {
        pageset_config config = without_thread(fast_path);
        pageset_pool *pool;
        void *page;
        int error = pageset_create(&config, &pool);
        if (error) {
            CHECK(pool == NULL && pageset_message()[0] != 0);
            return error;
        }
        CHECK(pageset_alloc(pool, 0, &page) == 0 && pageset_free(pool, page, 0) == 0);
        CHECK(pageset_destroy(pool) == 0);
    }
    return 0;
}

/* Fails the n-th allocation of an operation, for every n, and then all allocations from the n-th on. Returns the
 * number of allocations that the operation needs. */
static long for_every_allocation(pageset_pool *pool, int (*operation)(pageset_pool *)) {
    long n = 0;
    for (is_lasting = 0; is_lasting < 2; is_lasting++) {
        for (n = 0;; n++) {
            int error;
            failed = 0;
            left = n;
            error = operation(pool);
            left = -1;
            CHECK(error == (failed ? ENOMEM : 0));
            if (failed == 0) break;
        }
    }
    return n;
}

static void heap(uint32_t fast_path) {
    static int (*const need_none[])(pageset_pool *) = {
        use_up_all, free_half, bulk, others, trim, look, refused, tick, populate, free_all, resize,
        bulk, others, tick, use_up_all, free_all, trim, refused, look};
    pageset_config config = without_thread(fast_path);
    pageset_pool *pool;
    size_t index;
    long before;
    CHECK(pageset_create(&config, &pool) == 0);
    before = live;
    for (index = 0; index < sizeof need_none / sizeof *need_none; index++) {
        failed = 0;
        left = 0;
        is_lasting = 1;
        /* After `use_up_all`, some operations find no block of their order, and return an error. */
        CHECK(need_none[index](pool) == 0 || held > 0);
        left = -1;
        if (failed) fprintf(stderr, "operation %lu asked for memory\n", (unsigned long)index);
        CHECK(failed == 0 && pageset_validate(pool) == 0);
    }
    for_every_allocation(pool, backing);
    CHECK(live == before && pageset_validate(pool) == 0);
    failed = left = 0;
    CHECK(pageset_destroy(pool) == 0 && failed == 0);
    left = -1;
    before = live;
    CHECK(for_every_allocation(NULL, create) > 10 && live == before);
}

static unsigned long mapped(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * 4096;
}

static void limit(int resource, unsigned long soft) {
    struct rlimit limits;
    CHECK(getrlimit(resource, &limits) == 0);
    limits.rlim_cur = soft;
    CHECK(setrlimit(resource, &limits) == 0);
}

/* Makes a pool with too little address space, then with a little more, and so on, until the pool can be made. */
static void address_space(void) {
    unsigned long room;
    int error = ENOMEM;
    for (room = 0; error != 0; room += 128 << 10) {
        CHECK(room < 256 * MIB);
        limit(RLIMIT_AS, mapped() + room);
        error = create(NULL);
        CHECK(error == 0 || error == ENOMEM);
        limit(RLIMIT_AS, RLIM_INFINITY);
    }
    CHECK(room > 64 * MIB);
}

/* Tests that the caller makes all memory resident if no thread can be started. */
static void threads(void) {
    pageset_config config = without_thread(PAGESET_FAST_PATH_AUTO);
    pageset_pool *pool;
    size_t done;
    config.bytes = 256 * MIB;
    CHECK(pageset_create(&config, &pool) == 0);
    limit(RLIMIT_AS, mapped() + (1 << 20));
    CHECK(pageset_populate(pool, 128 * MIB, 8, NULL, NULL, &done) == 0 && done == 128 * MIB);
    limit(RLIMIT_AS, RLIM_INFINITY);
    CHECK(pageset_destroy(pool) == 0);
}

/* Tests a limit of file sizes. Besides the error, the kernel sends SIGXFSZ, and SIGXFSZ would end the program. */
static void file_size(void) {
    pageset_config config = without_thread(PAGESET_FAST_PATH_AUTO);
    pageset_pool *pool;
    config.backing = PAGESET_BACKING_MEMFD;
    limit(RLIMIT_FSIZE, 1 << 20);
    CHECK(pageset_create(&config, &pool) == EFBIG && strstr(pageset_message(), "ulimit -f"));
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
}

int main(int count, char **names) {
    const char *part = count > 1 ? names[1] : "";
    if (strcmp(part, "heap") == 0) {
        heap(PAGESET_FAST_PATH_AUTO);
        heap(PAGESET_FAST_PATH_LOCKS);
    } else if (strcmp(part, "address space") == 0) {
        address_space();
    } else if (strcmp(part, "threads") == 0) {
        threads();
    } else {
        CHECK(strcmp(part, "file size") == 0);
        file_size();
    }
    return 0;
}
