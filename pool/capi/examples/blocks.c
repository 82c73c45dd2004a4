/*
 * Blocks of a pool in C89. Build, at the root of the sources:
 *     cargo build -p pageset-capi --release
 *     cc -Ipool/capi/include pool/capi/examples/blocks.c target/release/libpageset_capi.a -o blocks
 */
#include <stdio.h>
#include <string.h>

#include <pageset.h>

/* Prints the error of a call. */
static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s (%s)\n", what, pageset_message(), strerror(error));
    return 1;
}

int main(void) {
    pageset_config config;
    pageset_pool *pool;
    pageset_stats stats;
    void *huge, *pages[100];
    size_t got;
    int error;

    pageset_config_init(&config, sizeof config);
    config.bytes = (size_t)64 << 20;
    error = pageset_create(&config, &pool);
    if (error) return failed("create", error);

    error = pageset_alloc_zeroed(pool, 9, &huge); /* 4 KiB << 9 is 2 MiB */
    if (error) return failed("alloc", error);
    strcpy((char *)huge, "hello");

    error = pageset_alloc_bulk(pool, 100, pages, &got);
    if (error) return failed("alloc_bulk", error);
    error = pageset_free_bulk(pool, got, pages, NULL);
    if (error) return failed("free_bulk", error);

    /* A wrong call gets an error, and changes nothing. */
    error = pageset_free(pool, pages[0], 0);
    printf("freed twice: %s\n", error ? "refused" : "taken");

    pageset_get_stats(pool, &stats, sizeof stats);
    printf("%s in %lu pages that are used\n", (char *)huge, (unsigned long)stats.nr_used);

    error = pageset_free(pool, huge, 9);
    if (error) return failed("free", error);
    error = pageset_destroy(pool);
    if (error) return failed("destroy", error);
    return 0;
}
