/* A pool for registration with a device: every address keeps its page until the pool is destroyed. Build it
 * like blocks.c. */
#include <pageset.h>
#include <stdio.h>

int main(void)
{
    pageset_config config;
    pageset_pool *pool;
    void *start;

    pageset_config_init(&config, sizeof config);
    config.bytes = 256 << 20;
    config.pinned = 1;
    config.fork = PAGESET_FORK_HIDE;
    if (pageset_create(&config, &pool) != 0 || pageset_get_start(pool, &start) != 0) {
        fprintf(stderr, "%s\n", pageset_message());
        return 1;
    }
    printf("register %lu bytes from %p on\n", (unsigned long)config.bytes, start);
    return pageset_destroy(pool);
}
