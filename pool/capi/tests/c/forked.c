/* A child of fork: calls that would change the parent's pool get EPERM, no call waits, and the child's own pools
 * work. */
#define _DEFAULT_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "make_pool.h"

static void child(pageset_pool *pool, void *page) {
    pageset_pool *own;
    pageset_stats stats;
    pageset_backing backing;
    void *other = NULL;
    size_t count;
    uint64_t bytes;
    int number;
    CHECK(strcmp((char *)page, "of the parent") == 0);
    CHECK(pageset_alloc(pool, 0, &other) == EPERM);
    CHECK(strstr(pageset_message(), "parent"));
    CHECK(pageset_alloc_zeroed(pool, 0, &other) == EPERM);
    CHECK(pageset_alloc_exact(pool, 3, &other) == EPERM);
    CHECK(pageset_alloc_run(pool, 3, &other) == EPERM && pageset_alloc_run_zeroed(pool, 3, &other) == EPERM);
    CHECK(pageset_alloc_run_aligned(pool, 5 << 20, 8 << 20, &other) == EPERM);
    CHECK(pageset_free_run(pool, page) == EPERM && pageset_discard(pool, page, 1, &count) == EPERM);
    CHECK(pageset_split(pool, page, 2, 1, &other) == EPERM);
    CHECK(pageset_alloc_at(pool, 0, 0, &other) == EPERM);
    CHECK(pageset_alloc_bulk(pool, 1, &other, &count) == EPERM && count == 0);
    CHECK(pageset_free(pool, page, 0) == EPERM);
    CHECK(pageset_free(pool, page, 0) == EPERM);
    CHECK(pageset_free_exact(pool, page, 1) == EPERM);
    CHECK(pageset_free_bulk(pool, 1, &page, &count) == EPERM && count == 0);
    CHECK(pageset_shrink(pool, page, 1, 0, 1, NULL) == EPERM);
    CHECK(pageset_populate(pool, 4096, 1, NULL, NULL, NULL) == EPERM);
    CHECK(pageset_collapse(pool, &bytes) == EPERM);
    CHECK(pageset_take_over(pool, 0) == EINVAL && strstr(pageset_message(), "not built to be taken over"));
    CHECK(pageset_trim(pool, &bytes) == EPERM);
    CHECK(pageset_tick(pool, &bytes, &number) == EPERM);
    CHECK(pageset_resize(pool, 0, NULL) == EPERM);
    CHECK(pageset_set_capacity(pool, 1) == EPERM);
    CHECK(pageset_set_returns(pool, NULL) == EPERM && pageset_set_pinned(pool, 1) == EPERM);
    CHECK(pageset_validate(pool) == EPERM);
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == EPERM);
    CHECK(pageset_get_counter(pool, "claimed", &bytes) == EPERM);
    CHECK(pageset_get_backing(pool, &backing, sizeof backing) == 0);
    CHECK(pageset_get_page_count(pool, &count) == 0 && count == 16384);
    CHECK(pageset_destroy(pool) == EPERM);
    CHECK(other == NULL);
    own = make_pool();
    CHECK(pageset_alloc(own, 0, &other) == 0);
    CHECK(pageset_free(own, other, 0) == 0);
    CHECK(pageset_destroy(own) == 0);
}

/* Tests a child while its parent lives. */
static void two_owners(void) {
    pageset_config config;
    pageset_pool *pool;
    void *page;
    int status;
    pid_t pid;
    CHECK(pageset_config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.fork = PAGESET_FORK_HAND_OVER;
    CHECK(pageset_create(&config, &pool) == 0);
    CHECK(pageset_take_over(pool, 0) == 0);
    pid = fork();
    if (pid == 0) {
        _exit(pageset_take_over(pool, 1000000) == EBUSY && pageset_alloc(pool, 0, &page) == EPERM ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(pageset_alloc(pool, 0, &page) == 0 && pageset_free(pool, page, 0) == 0);
    CHECK(pageset_destroy(pool) == 0);
    config.backing = PAGESET_BACKING_MEMFD;
    CHECK(pageset_create(&config, &pool) == EINVAL);
    CHECK(strstr(pageset_message(), "memory that is copied"));
}

int main(void) {
    pageset_pool *pool = make_pool();
    void *page;
    int status;
    pid_t pid;
    CHECK(pageset_alloc(pool, 0, &page) == 0);
    strcpy((char *)page, "of the parent");
    pid = fork();
    if (pid == 0) {
        /* Ends a child that waits for ever. */
        alarm(20);
        child(pool, page);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(pageset_free(pool, page, 0) == 0);
    CHECK(pageset_validate(pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    two_owners();
    return 0;
}
