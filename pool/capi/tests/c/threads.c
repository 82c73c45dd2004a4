/* Threads free each other's pages, and each thread also makes and destroys pools. */
#include <pthread.h>

#include "make_pool.h"

#define THREADS 4
#define ROUNDS 20000
#define CELLS 64

static pageset_pool *pool;
static void *cells[CELLS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *seed) {
    unsigned long random = (unsigned long)(uintptr_t)seed;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        void *page, *old;
        random = random * 6364136223846793005u + 1442695040888963407u;
        CHECK(pageset_alloc(pool, 0, &page) == 0);
        *(volatile unsigned long *)page = random;
        pthread_mutex_lock(&lock);
        old = cells[random >> 58];
        cells[random >> 58] = page;
        pthread_mutex_unlock(&lock);
        if (old) CHECK(pageset_free(pool, old, 0) == 0);
        if (round % 1000 == 0) {
            pageset_pool *own = make_pool();
            CHECK(pageset_destroy(own) == 0);
            CHECK(pageset_alloc(own, 0, &page) == EBADF);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pageset_stats stats;
    uintptr_t thread;
    int cell;
    pool = make_pool();
    for (thread = 0; thread < THREADS; thread++) CHECK(pthread_create(&threads[thread], NULL, work, (void *)thread) == 0);
    for (thread = 0; thread < THREADS; thread++) CHECK(pthread_join(threads[thread], NULL) == 0);
    for (cell = 0; cell < CELLS; cell++) {
        if (cells[cell]) CHECK(pageset_free(pool, cells[cell], 0) == 0);
    }
    CHECK(pageset_get_stats(pool, &stats, sizeof stats) == 0 && stats.nr_used == 0 && stats.bad_frees == 0);
    CHECK(pageset_validate(pool) == 0);
    CHECK(pageset_destroy(pool) == 0);
    return 0;
}
