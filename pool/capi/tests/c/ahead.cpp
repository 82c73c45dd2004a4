// Declares the structs of pageset.h before the program includes pageset.h, as a header of the program may do.
struct pageset_config;
struct pageset_stats;
struct pageset_backing;
struct pageset_node;
struct pageset_pool;
int tune(pageset_config *, struct pageset_stats *, pageset_backing *, pageset_node *, pageset_pool *);

#include "make_pool.h"

int tune(pageset_config *config, struct pageset_stats *, pageset_backing *, pageset_node *, pageset_pool *) {
    return pageset_config_init(config, sizeof *config);
}

int main() {
    struct pageset_config config;
    CHECK(tune(&config, nullptr, nullptr, nullptr, nullptr) == 0 && config.bytes == 1024 * MIB);
    pageset_pool *pool = make_pool();
    CHECK(pageset_destroy(pool) == 0);
}
