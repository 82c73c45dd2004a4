/*
 * pageset: a pool of 4 KiB to 4 MiB pages in user space. Link with -lpageset (pkg-config pageset, find_package(pageset)).
 *
 * Results. Every function that can fail gives 0, or a number of errno.h, and then has changed nothing unless it says so.
 * pageset_message says more. EBADF: no such pool, or one of another copy of the library. EPERM: this process is a child of fork,
 * and the pool its parent's.
 * ENOTRECOVERABLE: a mistake in pageset itself. Results go to variables whose addresses are passed.
 *
 * Promises. A pointer to a variable, struct, array or string is NULL or leads to one, which no other thread changes meanwhile.
 * All else is looked up: handles and pages may be any pointer, at the cost of an error.
 *
 * Threads. Every function may be called by any thread at any time, with two exceptions: nobody else is inside of a call on a pool
 * that is being destroyed, and nobody else frees the same pages at the same moment. Pages belong to no thread.
 *
 * Signal handlers. A handler may call pageset_alloc, pageset_alloc_zeroed and pageset_free. If it has interrupted a call of its own
 * thread on the same pool, an allocation may get EAGAIN. A free gets 0, and the pages are free a little later. No other function is
 * for handlers. The pool's thread blocks all signals.
 *
 * Memory of the heap. Only pageset_create, pageset_get_backing and pageset_get_nodes ask for it, and get ENOMEM if there is none. A
 * free never does. To start a thread, the system's libraries ask for it, and end the program if there is none: pageset_create with
 * PAGESET_WORKER_THREAD, and pageset_populate with more than one thread.
 *
 * Unloading. The shared library stays in memory after dlclose, since threads may have been interrupted in its code.
 *
 * Fork. In a child, pages of the parent's pools can be read (unless PAGESET_FORK_HIDE), and everything that would change a pool, or
 * look into it, gets EPERM. The child may make pools of its own.
 */
#ifndef PAGESET_H
#define PAGESET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif


#define PAGESET_MAJOR 0
#define PAGESET_MINOR 1
#define PAGESET_PATCH 0


/*
 Bytes of a page, which is a block of order 0.
 */
#define PAGESET_PAGE_BYTES 4096

/*
 The largest order: a block of 4 MiB.
 */
#define PAGESET_MAX_ORDER 10

/*
 Most pages that pageset_alloc_exact gives.
 */
#define PAGESET_MAX_PAGE_COUNT 1024

/*
 Most pools of a process at a time.
 */
#define PAGESET_MAX_POOLS 4096

/*
 Private memory, in transparent huge pages as far as the system has them.
 */
#define PAGESET_BACKING_THP 0

/*
 Huge pages that the administrator reserved, of huge_page_bytes each; all are claimed when the pool is made.
 */
#define PAGESET_BACKING_HUGETLB 1

/*
 A file in memory, to be shared with other processes: see pageset_get_memfd.
 */
#define PAGESET_BACKING_MEMFD 2

/*
 Private memory in pages of 4 KiB.
 */
#define PAGESET_BACKING_PLAIN 3

/*
 Memory comes from the node of the CPU that touches it first.
 */
#define PAGESET_NUMA_FIRST_TOUCH 0

/*
 Memory comes from numa_node or not at all.
 */
#define PAGESET_NUMA_BIND 1

/*
 Memory comes from each node of numa_nodes in turn.
 */
#define PAGESET_NUMA_INTERLEAVE 2

/*
 A child of fork sees a copy of the pages; of a memfd and of hugetlb, the pages themselves.
 */
#define PAGESET_FORK_COPY 0

/*
 A child of fork does not see the pages, and the fork is faster.
 */
#define PAGESET_FORK_HIDE 1

/*
 As any memory.
 */
#define PAGESET_RESIDENCY_PAGEABLE 0

/*
 All of it is made resident and locked when the pool is made. Nothing is returned to the system.
 */
#define PAGESET_RESIDENCY_LOCKED 1

/*
 Restartable sequences if the system has them and PAGESET_RSEQ is not 0 in the environment, otherwise locks.
 */
#define PAGESET_FAST_PATH_AUTO 0

/*
 A try-lock per CPU.
 */
#define PAGESET_FAST_PATH_LOCKS 1

/*
 A thread of the pool's returns idle memory. It sleeps while nothing is idle.
 */
#define PAGESET_WORKER_THREAD 0

/*
 The program calls pageset_tick.
 */
#define PAGESET_WORKER_NONE 1

/*
 For keep_bytes: a fiftieth of the pool, 32 MiB at most.
 */
#define PAGESET_KEEP_DEFAULT UINT64_MAX

/*
 A pool, which pageset_create makes and pageset_destroy ends. The pointer is a number in disguise: it points nowhere, and a
 wrong, old or NULL one gets EBADF.
 */
typedef struct pageset_pool pageset_pool;

/*
 A pool's on_shortage.
 */
typedef int (*pageset_shortage)(void *context, size_t bytes);

/*
 What a pool is made from. pageset_config_init fills it with the defaults, which are in parentheses at the end.
 */
typedef struct pageset_config {
  /*
   sizeof(pageset_config), as the program was built.
   */
  size_t struct_bytes;
  /*
   1.
   */
  uint32_t version;
  /*
   PAGESET_BACKING_... (THP)
   */
  uint32_t backing;
  /*
   Bytes of the pool, a multiple of 4096, or of the huge page size; 4 TiB at most. (1 GiB)
   */
  size_t bytes;
  /*
   Most bytes that may be handed out at any time, caches included; 0 for the pool's size. Only whole pages of 4096 bytes
   count: of less than one, nothing can be had. (0)
   */
  size_t capacity_bytes;
  /*
   Bytes of a huge page if backing is PAGESET_BACKING_HUGETLB: 2 MiB or 1 GiB. (2 MiB)
   */
  size_t huge_page_bytes;
  /*
   Memory of the program's to be used instead of the system's, aligned to 4 MiB, of `bytes` bytes, that nobody else uses until
   the pool is destroyed; then backing is not looked at. NULL for none. (NULL)
   */
  void *region;
  /*
   Bit n for node n, if numa is PAGESET_NUMA_INTERLEAVE. (0)
   */
  uint64_t numa_nodes;
  /*
   PAGESET_NUMA_... (FIRST_TOUCH)
   */
  uint32_t numa;
  /*
   The node, if numa is PAGESET_NUMA_BIND. (0)
   */
  uint32_t numa_node;
  /*
   PAGESET_FORK_... (COPY)
   */
  uint32_t fork;
  /*
   PAGESET_RESIDENCY_... (PAGEABLE)
   */
  uint32_t residency;
  /*
   PAGESET_FAST_PATH_... (AUTO)
   */
  uint32_t fast_path;
  /*
   PAGESET_WORKER_... (THREAD)
   */
  uint32_t worker;
  /*
   Nanoseconds between two looks at what is idle. 2 MiB go back when they were free at two looks. (100 ms)
   */
  uint64_t return_interval_ns;
  /*
   Most bytes that go back to the system in one second. (4 GiB)
   */
  uint64_t return_bytes_per_second;
  /*
   Free bytes that stay with the pool; PAGESET_KEEP_DEFAULT. (PAGESET_KEEP_DEFAULT)
   */
  uint64_t keep_bytes;
  /*
   A look clears up to this many free 2 MiB for pageset_alloc_zeroed. (0)
   */
  uint32_t prezero_blocks;
  /*
   1: the page behind every address stays the same until the pool is destroyed. For a pool that is registered as a whole:
   buffers of io_uring, memory of RDMA, AF_XDP, vhost, VFIO. Nothing is returned to the system. Or 0. (0)
   */
  uint32_t pinned;
  /*
   Of pageblocks in part use, a look gives free pages back that lie together and have so many bytes; 4096 for single pages. Costs
   about a microsecond for each such part, and a page fault for each page that is used again. 0 for none. (0)
   */
  uint64_t part_bytes;
  /*
   What frees pages when an allocation finds none, or the capacity is handed out: a cache that evicts. Called with shortage_context and
   the bytes that are wanted, by the thread that allocates, while no lock of the pool is held: it may call the pool. Anything but 0 says
   that it freed something; then the allocation tries again. What it allocates itself may fail. It must return: no longjmp, and no
   exception of C++. (NULL)
   */
  pageset_shortage on_shortage;
  /*
   Passed to on_shortage. (NULL)
   */
  void *shortage_context;
} pageset_config;

/*
 What pageset_populate calls, one call at a time, from any of its threads: bytes that are resident, bytes that were asked for.
 Anything but 0 ends it. It must return: no longjmp, and no exception of C++.
 */
typedef int (*pageset_progress)(void *context, size_t done_bytes, size_t total_bytes);

/*
 A pool at one moment. Pages are of 4 KiB. Taken while others allocate, gauges may be a few pages apart.
 */
typedef struct pageset_stats {
  /*
   Bytes of this struct that were written.
   */
  size_t struct_bytes;
  /*
   1.
   */
  uint32_t version;
  /*
   Largest order of which there is a free block; -1 if nothing is free.
   */
  int32_t largest_free_order;
  /*
   Pages allocated since the pool was made (kernel: pgalloc_normal).
   */
  uint64_t pgalloc;
  /*
   Pages freed (kernel: pgfree).
   */
  uint64_t pgfree;
  /*
   Free pages that are in no array (kernel: nr_free_pages).
   */
  uint64_t nr_free_pages;
  /*
   Pages in the arrays of the fast path.
   */
  uint64_t nr_array;
  /*
   Pages that the program holds.
   */
  uint64_t nr_used;
  /*
   Pages out of service after pageset_resize.
   */
  uint64_t nr_retired;
  /*
   Pages that may be handed out or in arrays at most.
   */
  uint64_t capacity_pages;
  /*
   Times an array was filled.
   */
  uint64_t array_refills;
  /*
   Times half an array was given back.
   */
  uint64_t array_flushes;
  /*
   Times all arrays were emptied.
   */
  uint64_t array_drains;
  /*
   Sequences begun again, in all pools of the process.
   */
  uint64_t rseq_restarts;
  /*
   Frees that the pool refused late, since two threads freed the same pages at the same moment.
   */
  uint64_t bad_frees;
  /*
   Bytes cleared by pageset_alloc_zeroed.
   */
  uint64_t cleared_bytes;
  /*
   Bytes cleared in idle time.
   */
  uint64_t prezeroed_bytes;
  /*
   Bytes given back to the system.
   */
  uint64_t returned_bytes;
  /*
   Bytes that were given back and used again.
   */
  uint64_t refaulted_bytes;
  /*
   Nanoseconds spent in giving back.
   */
  uint64_t return_time_ns;
  /*
   Bytes of metadata mapped, but for 2 bytes a page of the C library; resident is what is used of it.
   */
  uint64_t metadata_bytes;
} pageset_stats;

/*
 The pool's memory as the kernel accounts for it, in bytes.
 */
typedef struct pageset_backing {
  /*
   Bytes of this struct that were written.
   */
  size_t struct_bytes;
  /*
   1.
   */
  uint32_t version;
  /*
   What was asked for: PAGESET_BACKING_...
   */
  uint32_t asked;
  /*
   Mapped: the pool's size.
   */
  uint64_t mapped_bytes;
  /*
   Resident now.
   */
  uint64_t resident_bytes;
  /*
   Resident in huge pages: transparent ones, or those of hugetlb.
   */
  uint64_t huge_bytes;
  /*
   Resident in pages of 4 KiB.
   */
  uint64_t small_bytes;
  /*
   Locked in memory.
   */
  uint64_t locked_bytes;
  /*
   Page size of the mapping itself; transparent huge pages do not change it.
   */
  uint64_t page_bytes;
} pageset_backing;

/*
 Memory of one NUMA node.
 */
typedef struct pageset_node {
  /*
   Bytes of the pool that are resident on it.
   */
  uint64_t resident_bytes;
  /*
   The node.
   */
  uint32_t node;
  /*
   0.
   */
  uint32_t reserved;
} pageset_node;

/*
 Fills *config with the defaults. struct_bytes is sizeof(pageset_config).

 Errors: EINVAL (config is NULL, or struct_bytes is smaller than the first two fields), E2BIG.
 */
int pageset_config_init(struct pageset_config *config, size_t struct_bytes);

/*
 Makes a pool as *config says, or as pageset_config_init says if config is NULL, and writes its handle to *pool. Costs some
 system calls; memory is used when pages are touched, but for tables: about 140 KiB for each GiB, and 30 KiB.

 Errors: EINVAL (a field of config; pageset_message names it), E2BIG (config has fields that are set and that this library does
 not know), ENOMEM (address space, heap, or huge pages), EMFILE (4096 pools), EFBIG (a limit of file sizes), or what the system
 said. Then *pool is NULL.
 */
int pageset_create(const struct pageset_config *config,
                   struct pageset_pool **pool);

/*
 Ends a pool none of whose pages is handed out, and unmaps its memory. O(pages that were touched). No other thread may be inside of a
 call on this pool; calls that come afterwards get EBADF.

 Errors: EBUSY (pages are handed out; nothing has changed), EBADF, EPERM.
 */
int pageset_destroy(struct pageset_pool *pool);

/*
 Allocates a block of 4 KiB << order (order 0 to 10), aligned to its size. Its contents are unspecified. Writes its address to
 *pages; nothing if it fails. O(1), mostly a few nanoseconds.

 Errors: EINVAL (order, or pages is NULL), ENOMEM (no such block is free), EDQUOT (the capacity is handed out), EAGAIN (in a
 signal handler only), EBADF, EPERM.
 */
int pageset_alloc(struct pageset_pool *pool,
                  unsigned int order,
                  void **pages);

/*
 As pageset_alloc, all bytes zero. Only what is not known to be zero is cleared.

 Errors: as pageset_alloc.
 */
int pageset_alloc_zeroed(struct pageset_pool *pool, unsigned int order, void **pages);

/*
 Allocates exactly page_count contiguous pages of 4 KiB, up to all of the pool, aligned to a page. Their contents are unspecified. They
 are freed by pageset_free_exact or pageset_free_run.

 Errors: EINVAL (page_count is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_exact(struct pageset_pool *pool,
                        size_t page_count,
                        void **pages);

/*
 Allocates contiguous bytes, rounded up to pages of 4 KiB, up to all of the pool, aligned to a page. Their contents are unspecified. They
 are freed by pageset_free_run. Up to 4 MiB this costs as much as a block; more are searched for, which is slower the larger the pool is.

 Errors: EINVAL (bytes is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_run(struct pageset_pool *pool,
                      size_t bytes,
                      void **pages);

/*
 As pageset_alloc_run, all bytes zero. Only what is not known to be zero is cleared.

 Errors: as pageset_alloc_run.
 */
int pageset_alloc_run_zeroed(struct pageset_pool *pool,
                             size_t bytes,
                             void **pages);

/*
 Allocates the block of 4 KiB << order that begins `frame` pages of 4 KiB after the pool's start, if all of it is free. Caches
 are emptied to find out: this is slow.

 Errors: EBUSY (not all of it is free), EINVAL (order, no block begins at this frame, or pages is NULL), EDQUOT, EBADF, EPERM.
 */
int pageset_alloc_at(struct pageset_pool *pool,
                     size_t frame,
                     unsigned int order,
                     void **pages);

/*
 Allocates up to page_count single pages of 4 KiB and writes their addresses to the array `pages`. *got is how many:
 fewer than page_count only if memory or capacity is short, and 0 if it fails. Each is freed by itself, with order 0.

 Errors: as pageset_alloc, if there was not one page. None if page_count is 0.
 */
int pageset_alloc_bulk(struct pageset_pool *pool, size_t page_count, void **pages, size_t *got);

/*
 Frees a block of 4 KiB << order. Any thread may free what another one allocated. O(1), mostly a few nanoseconds.

 Errors, each of which changes nothing: EINVAL (order, no page of this pool, inside of a block, free already, or handed out
 with another order), EBADF, EPERM. Two threads that free the same block at the same moment may both get 0; then the pool
 counts a bad free later.
 */
int pageset_free(struct pageset_pool *pool,
                 void *pages,
                 unsigned int order);

/*
 Frees page_count contiguous pages that are handed out as that many: by pageset_alloc_exact, after pageset_shrink, or a block
 of 1 << order pages.

 Errors, each of which changes nothing: as pageset_free.
 */
int pageset_free_exact(struct pageset_pool *pool,
                       void *pages,
                       size_t page_count);

/*
 Frees the pages that are handed out and begin here, however many they are: a block, exact pages, a run. With pageset_find, a program
 frees what it has a pointer of and nothing else.

 Errors, each of which changes nothing: EINVAL (no pages that are handed out begin here), EBADF, EPERM.
 */
int pageset_free_run(struct pageset_pool *pool,
                     void *pages);

/*
 Frees page_count contiguous pages as pageset_free_exact does, and gives their memory back to the system at once: the pages of a
 balloon. The pool knows then that they are zero. *returned_bytes (may be NULL) is how much went back: 0 where nothing does (see
 pageset_trim), and if the system keeps it. About 20 us for 2 MiB.

 Errors, each of which changes nothing: as pageset_free.
 */
int pageset_discard(struct pageset_pool *pool,
                    void *pages,
                    size_t page_count,
                    size_t *returned_bytes);

/*
 Makes two of page_count contiguous pages: keep_count stay where they are, and *rest (may be NULL) is where the others begin. Each part
 is freed by itself.

 Errors, each of which changes nothing: EINVAL (page_count is not what is handed out here, or one of the parts were empty), EBADF, EPERM.
 */
int pageset_split(struct pageset_pool *pool,
                  void *pages,
                  size_t page_count,
                  size_t keep_count,
                  void **rest);

/*
 Frees page_count single pages of 4 KiB. It ends at the first that cannot be freed: *freed is how many were, and
 so the index of that page. freed may be NULL.

 Errors: as pageset_free, for that page; EINVAL if pages is NULL.
 */
int pageset_free_bulk(struct pageset_pool *pool, size_t page_count, void *const *pages, size_t *freed);

/*
 Keeps keep_count of page_count contiguous pages, beginning with the one of index keep_first, and frees the others at once.
 *kept is the address of those that stay, and may be NULL; they are freed by pageset_free_exact.

 Errors, each of which changes nothing: EINVAL (page_count is not what is handed out here, keep_count is 0, or they reach beyond
 page_count), EBADF, EPERM.
 */
int pageset_shrink(struct pageset_pool *pool,
                   void *pages,
                   size_t page_count,
                   size_t keep_first,
                   size_t keep_count,
                   void **kept);

/*
 Makes the first `bytes` of the pool resident, with `threads` threads, until the next pageset_trim. Contents do not change, so
 this may run while the pool is used. progress (may be NULL) is called with context about every 32 MiB. *done_bytes (may be
 NULL) is how many bytes are resident.

 Errors: EINVAL (no thread), ECANCELED (progress ended it), ENOMEM and what else the system says, EBADF, EPERM. What was made
 resident stays so. If a thread cannot be started, the others do its part. To start one takes memory of the heap, without which
 the program ends; with 1 thread, none is started.
 */
int pageset_populate(struct pageset_pool *pool,
                     size_t bytes,
                     unsigned int threads,
                     pageset_progress progress,
                     void *context,
                     size_t *done_bytes);

/*
 Gives all free memory back to the system now. *returned_bytes (may be NULL) is how much. About 20 us for each 2 MiB.

 Errors: EBADF, EPERM.
 */
int pageset_trim(struct pageset_pool *pool, uint64_t *returned_bytes);

/*
 One look at idle memory, as the pool's thread takes it: for pools made with PAGESET_WORKER_NONE. *returned_bytes (may be NULL)
 is how much went back, *more (may be NULL) is 1 if there is more to come, otherwise 0.

 Errors: EBADF, EPERM.
 */
int pageset_tick(struct pageset_pool *pool,
                 uint64_t *returned_bytes,
                 int *more);

/*
 Takes free memory out of service until at most `bytes` are in service, or puts some back; never beyond the size that the pool
 was made with. *bytes_in_service (may be NULL) is how many are then: more than `bytes` if not enough is free, in which case
 the capacity still falls, and this can be called again.

 Errors: EBADF, EPERM.
 */
int pageset_resize(struct pageset_pool *pool,
                   size_t bytes,
                   size_t *bytes_in_service);

/*
 Idle memory goes back as *config says, from the next look on: its fields return_interval_ns, return_bytes_per_second, keep_bytes,
 prezero_blocks and part_bytes. config may be NULL for the defaults.

 Errors: as pageset_create for these fields, EBADF, EPERM.
 */
int pageset_set_returns(struct pageset_pool *pool,
                        const struct pageset_config *config);

/*
 From now on, at most so many bytes are handed out, caches included; never more than the pool has. So a pool that was made larger than
 capacity_bytes grows: address space that was never used costs nearly nothing, and the lowest pages are used first. If more is handed out
 already, allocations get EDQUOT until enough is freed. O(1).

 Errors: EBADF, EPERM.
 */
int pageset_set_capacity(struct pageset_pool *pool,
                         size_t bytes);

/*
 With pinned 1, the page behind every address stays the same from the return of this call on; with 0, memory may go back again. For a
 pool that is registered later than it is made: pin it before, unpin it when it is registered no more.

 Errors: EINVAL (pinned is neither 0 nor 1), EBADF, EPERM.
 */
int pageset_set_pinned(struct pageset_pool *pool,
                       int pinned);

/*
 Checks everything about the pool that can be checked by looking: pageset_message says what is wrong. O(pages); exact only while
 nobody else uses the pool.

 Errors: EUCLEAN (something is wrong: a mistake in pageset, or memory that was overwritten), EBADF, EPERM.
 */
int pageset_validate(struct pageset_pool *pool);

/*
 What happened in the pool, and where its pages are. struct_bytes is sizeof(pageset_stats).

 Errors: EINVAL (stats is NULL, or struct_bytes too small), EBADF, EPERM.
 */
int pageset_get_stats(struct pageset_pool *pool, struct pageset_stats *stats, size_t struct_bytes);

/*
 One counter of the allocator of pageblocks by name: "adopted", "claimed", "published", "closed", "settled", "rescued", "foreign",
 "retyped", "double_frees", "damaged", "line_transfers", "contended_lines", "below_low", "failed". The
 guide to the C library says what each counts.

 Errors: ENOENT (no counter has this name), EINVAL (NULL), EBADF, EPERM.
 */
int pageset_get_counter(struct pageset_pool *pool,
                        const char *name,
                        uint64_t *value);

/*
 What memory the pool really has. struct_bytes is sizeof(pageset_backing). Reads /proc/self/smaps: O(mappings of the process).
 In a child of fork it tells of the child's own memory.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is used up), EINVAL (backing is NULL, or struct_bytes too small), EBADF.
 */
int pageset_get_backing(struct pageset_pool *pool,
                        struct pageset_backing *backing,
                        size_t struct_bytes);

/*
 The pool's resident memory node by node, nodes_max at most. *count is how many nodes there are: if it is more than nodes_max,
 those beyond were not written. 0 if the kernel does not tell.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is used up), EINVAL (NULL), EBADF.
 */
int pageset_get_nodes(struct pageset_pool *pool,
                      struct pageset_node *nodes,
                      size_t nodes_max,
                      size_t *count);

/*
 The version of the library, such as "0.1.0".
 */
const char *pageset_version(void);

/*
 *order is the smallest order whose block holds so many bytes: 0 for up to 4096, 10 for up to 4 MiB.

 Errors: EINVAL (bytes is 0 or more than 4 MiB, or order is NULL).
 */
int pageset_order_for_bytes(size_t bytes, unsigned int *order);

/*
 *pool is the pool that has handed out the pages that begin at an address, *bytes is how many bytes they have. Both may be NULL. For
 programs that keep a pointer only: their free is pageset_find and pageset_free_run. A few nanoseconds, for the first pools of a program.

 Errors: EINVAL (no pages that are handed out begin here). Then *pool is NULL, and *bytes 0.
 */
int pageset_find(const void *pages,
                 struct pageset_pool **pool,
                 size_t *bytes);

/*
 Pages of 4 KiB in the pool.

 Errors: EINVAL (page_count is NULL), EBADF.
 */
int pageset_get_page_count(struct pageset_pool *pool, size_t *page_count);

/*
 Where the pool begins. A page's distance from here is its offset in the pool's file, if it has one.

 Errors: EINVAL (start is NULL), EBADF.
 */
int pageset_get_start(struct pageset_pool *pool, void **start);

/*
 The file of a pool that was made with PAGESET_BACKING_MEMFD, to be mapped by other processes. It is closed with the pool: pass
 on a dup of it. Whoever has it leaves alone the bytes of pages that nobody has, some of which are known to be zero.

 Errors: ENOTSUP (another backing), EINVAL (memfd is NULL), EBADF.
 */
int pageset_get_memfd(struct pageset_pool *pool,
                      int *memfd);

/*
 *uses_rseq is 1 if the pool's fast path uses restartable sequences, 0 if it takes locks.

 Errors: EINVAL (uses_rseq is NULL), EBADF.
 */
int pageset_get_uses_rseq(struct pageset_pool *pool, int *uses_rseq);

/*
 What was wrong with this thread's last call that failed, and what to do about it: one sentence of English without a newline.
 Empty if none has failed yet. Never NULL. Valid until this thread calls pageset_message again, or ends.
 */
const char *pageset_message(void);

#ifdef __cplusplus
}
#endif

#endif
