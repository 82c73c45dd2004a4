/* The program has the static library, and opens the shared library. Each library must refuse the handles
 * of the other library. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "make_pool.h"

static int (*create)(const pageset_config *, pageset_pool **);
static int (*destroy)(pageset_pool *);
static int (*alloc)(pageset_pool *, unsigned, void **);
static int (*give_back)(pageset_pool *, void *, unsigned);

static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    CHECK(found);
    memcpy(function, &found, sizeof found);
}

int main(int count, char **names) {
    pageset_pool *own = make_pool(), *others;
    void *library, *page, *other;
    int round;
    CHECK(count > 1);
    library = dlopen(names[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    find(library, "pageset_create", &create);
    find(library, "pageset_destroy", &destroy);
    find(library, "pageset_alloc", &alloc);
    find(library, "pageset_free", &give_back);
    CHECK(create(NULL, &others) == 0);
    CHECK(pageset_alloc(own, 0, &page) == 0 && alloc(others, 0, &other) == 0);
    CHECK(own != others);
    CHECK(pageset_alloc(others, 0, &page) == EBADF && alloc(own, 0, &other) == EBADF);
    CHECK(pageset_free(others, other, 0) == EBADF && give_back(own, page, 0) == EBADF);
    CHECK(pageset_destroy(others) == EBADF && destroy(own) == EBADF);
    CHECK(pageset_free(own, page, 0) == 0 && give_back(others, other, 0) == 0);
    CHECK(pageset_destroy(own) == 0 && destroy(others) == 0);
    /* Each library must also refuse the handle of a pool that the other library makes later. */
    for (round = 0; round < 50; round++) {
        own = make_pool();
        CHECK(create(NULL, &others) == 0);
        CHECK(destroy(own) == EBADF && pageset_destroy(others) == EBADF);
        CHECK(pageset_destroy(own) == 0 && destroy(others) == 0);
    }
    return 0;
}
