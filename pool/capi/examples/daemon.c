/* Makes a pool before daemon(3), and uses the pool in the daemon. Build it like blocks.c. */
#define _DEFAULT_SOURCE
#include <pageset.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failed(void)
{
    fprintf(stderr, "%s\n", pageset_message());
    return 1;
}

int main(void)
{
    pageset_config config;
    pageset_pool *pool;
    void *page;

    pageset_config_init(&config, sizeof config);
    config.bytes = 64 << 20;
    config.fork = PAGESET_FORK_HAND_OVER;
    if (pageset_create(&config, &pool) != 0 || pageset_alloc(pool, 0, &page) != 0) return failed();
    strcpy((char *)page, "written before daemon()");

    if (daemon(0, 1) != 0) return 1; /* the parent ends here */
    if (pageset_take_over(pool, 1000000000) != 0) return failed();

    puts((char *)page);
    if (pageset_free(pool, page, 0) != 0 || pageset_destroy(pool) != 0) return failed();
    return 0;
}
