/* A signal handler allocates and frees. It may interrupt any code. The handler must get pages or EAGAIN,
 * and must never wait. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <sys/time.h>

#include "check.h"

/* Tests a handler with a pool whose arrays have locks. Also tests a pool with restartable sequences, if
 * the system has them. */
static pageset_pool *pool;
static volatile sig_atomic_t runs, wrong, held;
static void *kept[64];

static void handle(int signal) {
    void *page;
    int error = pageset_alloc(pool, 0, &page);
    (void)signal;
    if (error == 0 && held < 64) {
        kept[held++] = page;
    } else if (error == 0) {
        wrong |= pageset_free(pool, page, 0) != 0;
        while (held > 0) wrong |= pageset_free(pool, kept[--held], 0) != 0;
    } else {
        wrong |= error != EAGAIN && error != ENOMEM;
    }
    runs++;
}

/* Run until the handler has run this number of times. */
static void allocate(int times) {
    static void *pages[3000];
    while (runs < times) {
        size_t count = 0, index;
        while (count < 3000 && pageset_alloc(pool, count % 4, &pages[count]) == 0) count++;
        for (index = 0; index < count; index++) CHECK(pageset_free(pool, pages[index], index % 4) == 0);
        CHECK(pageset_trim(pool, NULL) == 0);
    }
}

int main(void) {
    struct itimerval each = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
    uint32_t fast_path;
    for (fast_path = 0; fast_path < 2; fast_path++) {
        pageset_config config;
        pageset_stats stats;
        CHECK(pageset_config_init(&config, sizeof config) == 0);
        config.bytes = 16 * MIB;
        config.fast_path = fast_path;
        CHECK(pageset_create(&config, &pool) == 0);
        runs = 0;
        CHECK(signal(SIGALRM, handle) != SIG_ERR);
        CHECK(setitimer(ITIMER_REAL, &each, NULL) == 0);
        allocate(1000);
        CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
        /* valgrind delivers a signal late. */
        CHECK(signal(SIGALRM, SIG_IGN) != SIG_ERR);
        while (held > 0) CHECK(pageset_free(pool, kept[--held], 0) == 0);
        CHECK(!wrong);
        CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0 && stats.nr_used == 0 && stats.bad_frees == 0);
        CHECK(pageset_validate(pool) == 0);
        CHECK(pageset_destroy(pool) == 0);
    }
    return 0;
}
