// Pages that are freed by their destructor, in C++17. Build:
//     c++ -std=c++17 owned.cpp $(pkg-config --cflags --libs pageset) -o owned
#include <cerrno>
#include <iostream>
#include <memory>
#include <system_error>

#include <pageset.h>

namespace {

// Throws the error of a call, with the library's message.
void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category(), pageset_message());
}

struct Destroy {
    void operator()(pageset_pool *pool) const { pageset_destroy(pool); }
};
using Pool = std::unique_ptr<pageset_pool, Destroy>;

struct Free {
    pageset_pool *pool;
    unsigned order;
    void operator()(void *pages) const { pageset_free(pool, pages, order); }
};
using Pages = std::unique_ptr<void, Free>;

Pool make_pool(std::size_t bytes) {
    pageset_config config;
    check(pageset_config_init(&config, sizeof config));
    config.bytes = bytes;
    pageset_pool *pool = nullptr;
    check(pageset_create(&config, &pool));
    return Pool(pool);
}

Pages alloc(const Pool &pool, unsigned order) {
    void *pages = nullptr;
    check(pageset_alloc(pool.get(), order, &pages));
    return Pages(pages, Free{pool.get(), order});
}

}  // namespace

int main() {
    const Pool pool = make_pool(std::size_t{16} << 20);
    {
        const Pages page = alloc(pool, 0), huge = alloc(pool, 9);
        std::cout << (page && huge ? "two blocks" : "nothing") << '\n';
    }
    try {
        alloc(pool, 11);
        return 1;
    } catch (const std::system_error &error) {
        std::cout << error.what() << '\n';
        if (error.code().value() != EINVAL) return 1;
    }
    pageset_stats stats;
    check(pageset_get_stats(pool.get(), &stats, sizeof stats));
    std::cout << stats.nr_used << " pages are used\n";
    return stats.nr_used == 0 ? 0 : 1;
}
