/* The program opens a library that has pageset in it. Four threads use the library, and the program closes the
 * library. The threads go on. Each thread was in a sequence, and the kernel reads the sequence's descriptor in
 * the library when the kernel interrupts the thread. With `forget`, the program leaves a pool with a thread of
 * its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4

static int (*config_init)(pageset_config *, size_t);
static int (*create)(const pageset_config *, pageset_pool **);
static int (*destroy)(pageset_pool *);
static int (*alloc)(pageset_pool *, unsigned, void **);
static int (*give_back)(pageset_pool *, void *, unsigned);
static pthread_barrier_t barrier;
static int forgets;

/* Copies the bytes of the address, because C cannot convert an object's address to a function's address. */
static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "%s\n", dlerror());
    if (!found) exit(1);
    memcpy(function, &found, sizeof found);
}

#define DEMAND(condition) \
    if (!(condition)) { \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        exit(1); \
    }

static void *work(void *unused) {
    struct timespec moment = {0, 1000000};
    pageset_config config;
    pageset_pool *pool;
    void *page;
    int round;
    DEMAND(config_init(&config, sizeof config) == 0);
    config.bytes = 16 * MIB;
    config.worker = forgets ? PAGESET_WORKER_THREAD : PAGESET_WORKER_NONE;
    DEMAND(create(&config, &pool) == 0);
    for (round = 0; round < 1000; round++) {
        DEMAND(alloc(pool, 0, &page) == 0);
        DEMAND(give_back(pool, page, 0) == 0);
    }
    DEMAND(forgets || destroy(pool) == 0);
    pthread_barrier_wait(&barrier);
    /* Here main closes the library. */
    pthread_barrier_wait(&barrier);
    for (round = 0; round < 300; round++) {
        nanosleep(&moment, NULL);
        sched_yield();
    }
    return unused;
}

int main(int count, char **names) {
    pthread_t threads[THREADS];
    void *library;
    int index, status;
    pid_t child;
    DEMAND(count > 1);
    forgets = count > 2 && strcmp(names[2], "forget") == 0;
    library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    DEMAND(library);
    find(library, "pageset_config_init", &config_init);
    find(library, "pageset_create", &create);
    find(library, "pageset_destroy", &destroy);
    find(library, "pageset_alloc", &alloc);
    find(library, "pageset_free", &give_back);
    DEMAND(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (index = 0; index < THREADS; index++) DEMAND(pthread_create(&threads[index], NULL, work, NULL) == 0);
    pthread_barrier_wait(&barrier);
    DEMAND(dlclose(library) == 0);
    pthread_barrier_wait(&barrier);
    for (index = 0; index < THREADS; index++) DEMAND(pthread_join(threads[index], NULL) == 0);
    /* The handlers of fork do not call unmapped code, either. */
    child = fork();
    if (child == 0) _exit(0);
    DEMAND(waitpid(child, &status, 0) == child && status == 0);
    /* The library must still be in memory. */
    DEMAND(dlopen(names[1], RTLD_NOW | RTLD_NOLOAD));
    return 0;
}
