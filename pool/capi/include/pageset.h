/*
 * pageset: a pool of 4 KiB to 4 MiB pages in user space. Link with -lpageset (pkg-config pageset,
 * find_package(pageset)).
 *
 * Results. Every function that can fail returns 0 or a number of errno.h; pageset_message says more. After an
 * error nothing has changed, unless the function says so. Results are written to variables whose addresses
 * are passed. EBADF: no such pool, or a pool of another copy of the library. EPERM: this process is a child
 * of fork, and the pool belongs to its parent. ENOTRECOVERABLE: a mistake in pageset itself.
 *
 * Promises. A pointer to a variable, struct, array or string is NULL or valid, and no other thread changes
 * the data meanwhile. Everything else is looked up: handles and pages may be any pointer, and a wrong one
 * gets an error.
 *
 * Threads. Any thread may call every function at any time, with two exceptions. While a pool is destroyed, no
 * other thread may be inside of a call on it. Two threads must not free the same pages at the same moment.
 * Pages belong to no thread.
 *
 * Signal handlers. A handler may call pageset_alloc, pageset_alloc_zeroed and pageset_free. If it has
 * interrupted a call of its own thread on the same pool, an allocation may get EAGAIN. A free returns 0, and
 * the pages are freed a little later. No other function is for handlers. The pool's thread blocks all
 * signals.
 *
 * Memory of the heap. Only pageset_create, pageset_get_backing and pageset_get_nodes need it, and return
 * ENOMEM if there is none. A free never does. To start a thread, the system's libraries need it, and end the
 * program if there is none: pageset_create with PAGESET_WORKER_THREAD, and pageset_populate with more than
 * one thread.
 *
 * Unloading. The shared library stays in memory after dlclose, because threads may have been interrupted in
 * its code.
 *
 * Fork. A child can read pages of the parent's pools (unless PAGESET_FORK_HIDE). Every call that would change
 * a pool or look into it gets EPERM. The child may make pools of its own. With PAGESET_FORK_HAND_OVER, it may
 * take a pool over when the parent has ended.
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
 Pages of the largest block. pageset_alloc_exact also allocates longer runs.
 */
#define PAGESET_MAX_PAGE_COUNT 1024

/*
 The most pools of a process at a time.
 */
#define PAGESET_MAX_POOLS 4096

/*
 Private memory, in transparent huge pages where the system has them.
 */
#define PAGESET_BACKING_THP 0

/*
 Huge pages of huge_page_bytes each that the administrator reserved. The pool takes all of them when it is
 made. They belong to a file: see pageset_get_memfd.
 */
#define PAGESET_BACKING_HUGETLB 1

/*
 A file in memory, which other processes can share: see pageset_get_memfd.
 */
#define PAGESET_BACKING_MEMFD 2

/*
 Private memory in pages of 4 KiB.
 */
#define PAGESET_BACKING_PLAIN 3

/*
 PAGESET_BACKING_HUGETLB if the system has enough such pages for the whole pool and fork is
 PAGESET_FORK_HIDE or PAGESET_FORK_COPY, otherwise PAGESET_BACKING_THP. page_bytes of pageset_get_backing
 tells which. Children see huge pages of hugetlb as the parent's memory itself.
 */
#define PAGESET_BACKING_HUGETLB_OR_THP 4

/*
 Memory comes from the node of the CPU that touches it first.
 */
#define PAGESET_NUMA_FIRST_TOUCH 0

/*
 Memory comes from numa_node only.
 */
#define PAGESET_NUMA_BIND 1

/*
 Memory comes from each node of numa_nodes in turn.
 */
#define PAGESET_NUMA_INTERLEAVE 2

/*
 A child of fork sees a copy of the pages. It sees the pages of a memfd and of hugetlb themselves.
 */
#define PAGESET_FORK_COPY 0

/*
 A child of fork does not see the pages, which makes the fork faster.
 */
#define PAGESET_FORK_HIDE 1

/*
 A copy, as with PAGESET_FORK_COPY, and a child may make the pool its own when its parent has ended:
 pageset_take_over. For private memory that is not locked.
 */
#define PAGESET_FORK_HAND_OVER 2

/*
 The memory may be swapped out.
 */
#define PAGESET_RESIDENCY_PAGEABLE 0

/*
 All memory is made resident and locked when the pool is made. No memory is returned to the system.
 */
#define PAGESET_RESIDENCY_LOCKED 1

/*
 Restartable sequences if the system has them and PAGESET_RSEQ is not 0 in the environment, otherwise
 locks.
 */
#define PAGESET_FAST_PATH_AUTO 0

/*
 A try-lock for each CPU.
 */
#define PAGESET_FAST_PATH_LOCKS 1

/*
 A thread of the pool returns idle memory. It sleeps while nothing is idle.
 */
#define PAGESET_WORKER_THREAD 0

/*
 The program calls pageset_tick.
 */
#define PAGESET_WORKER_NONE 1

/*
 For keep_bytes: 2 % of the pool, at most 32 MiB.
 */
#define PAGESET_KEEP_DEFAULT UINT64_MAX

/*
 A pool, made by pageset_create and destroyed by pageset_destroy. The pointer is a number in disguise: it
 points nowhere, and a wrong, old or NULL one gets EBADF.
 */
typedef struct pageset_pool pageset_pool;

/*
 The type of pageset_config's on_shortage.
 */
typedef int (*pageset_shortage)(void *context, size_t bytes);

/*
 The configuration of a pool. pageset_config_init fills it with the defaults, which are in parentheses at
 the end.
 */
typedef struct pageset_config {
  /*
   sizeof(pageset_config) when the program was built.
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
   Bytes of the pool: a multiple of 4096, or of the huge page size, and at most 4 TiB. (1 GiB)
   */
  size_t bytes;
  /*
   The most bytes that may be handed out at any time, caches included; 0 for the pool's size. Only whole
   pages of 4096 bytes count: with less than one, every allocation fails. (0)
   */
  size_t capacity_bytes;
  /*
   Bytes of a huge page if backing is PAGESET_BACKING_HUGETLB or PAGESET_BACKING_HUGETLB_OR_THP: 2 MiB or
   1 GiB. (2 MiB)
   */
  size_t huge_page_bytes;
  /*
   The program's own memory, to use instead of the system's. It has `bytes` bytes and is aligned to 4
   MiB. Only the pool may use it until the pool is destroyed. `backing` is then ignored. NULL for none.
   (NULL)
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
   Nanoseconds between two scans for idle memory. 2 MiB go back when two scans in a row found them free.
   (100 ms)
   */
  uint64_t return_interval_ns;
  /*
   The most bytes that go back to the system in one second. (4 GiB)
   */
  uint64_t return_bytes_per_second;
  /*
   Free bytes that stay with the pool, or PAGESET_KEEP_DEFAULT. (PAGESET_KEEP_DEFAULT)
   */
  uint64_t keep_bytes;
  /*
   A scan clears up to this many free blocks of 2 MiB for pageset_alloc_zeroed. (0)
   */
  uint32_t prezero_blocks;
  /*
   1: the page behind every address stays the same until the pool is destroyed, and no memory is returned
   to the system. For a pool that is registered as a whole: buffers of io_uring, memory of RDMA, AF_XDP,
   vhost, VFIO. Otherwise 0. (0)
   */
  uint32_t pinned;
  /*
   The smallest free part of a pageblock in part use that scans return, in bytes; 4096 for single pages.
   Each part costs about a microsecond, and a page fault for each page that is used again. 0 for none.
   (0)
   */
  uint64_t part_bytes;
  /*
   Frees pages, for example by evicting from a cache, when an allocation finds none or the capacity is
   used up. The allocating thread calls it with shortage_context and the number of wanted bytes. No lock
   of the pool is held, so it may call the pool. Another result than 0 says that it freed something; then
   the allocation tries again. Allocations in it, also from other pools, may fail, and call no such
   function. It must not wait for a lock that its thread holds during an allocation: it would wait for
   ever. It must return, without longjmp or a C++ exception. (NULL)
   */
  pageset_shortage on_shortage;
  /*
   Passed to on_shortage. (NULL)
   */
  void *shortage_context;
} pageset_config;

/*
 Reports progress of pageset_populate: resident bytes, and bytes to populate in all. Any of its threads
 calls it, one call at a time. Another result than 0 ends the work. It must return, without longjmp or a
 C++ exception.
 */
typedef int (*pageset_progress)(void *context, size_t done_bytes, size_t total_bytes);

/*
 The state of a pool at one moment. Pages have 4 KiB. While other threads allocate, gauges may differ by a
 few pages.
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
   The largest order that has a free block; -1 if no page is free.
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
   The most pages that may be handed out or in arrays.
   */
  uint64_t capacity_pages;
  /*
   How often an array was refilled.
   */
  uint64_t array_refills;
  /*
   How often half an array was flushed.
   */
  uint64_t array_flushes;
  /*
   How often all arrays were drained.
   */
  uint64_t array_drains;
  /*
   Restarted sequences, in all pools of the process.
   */
  uint64_t rseq_restarts;
  /*
   Frees that the pool refused late, because two threads freed the same pages at the same moment.
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
   Bytes returned to the system.
   */
  uint64_t returned_bytes;
  /*
   Returned bytes that were used again.
   */
  uint64_t refaulted_bytes;
  /*
   Nanoseconds spent in returning memory.
   */
  uint64_t return_time_ns;
  /*
   Bytes of mapped metadata, except for 2 bytes a page of the C library. Only the used part is resident.
   */
  uint64_t metadata_bytes;
  /*
   How often a drain failed because the system refused membarrier(2): a filter of system calls was installed
   after the pool was made. Pages in arrays of other CPUs then neither form larger blocks nor go back.
   */
  uint64_t array_drains_refused;
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
   The requested backing: PAGESET_BACKING_...
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
   Resident in huge pages, transparent or hugetlb.
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
   Page size of the mapping itself; transparent huge pages do not change it. So this tells what a pool with
   PAGESET_BACKING_HUGETLB_OR_THP got: 4096 for transparent huge pages.
   */
  uint64_t page_bytes;
} pageset_backing;

/*
 Memory of one NUMA node.
 */
typedef struct pageset_node {
  /*
   Bytes of the pool that are resident on the node.
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
 Makes a pool with this configuration, or with the defaults of pageset_config_init if config is NULL.
 Writes its handle to *pool. This costs some system calls. Pages take memory when they are touched. Tables
 take at most 140 KiB for each GiB that is used, and some 30 KiB.

 Errors: EINVAL (a field of config; pageset_message names it), E2BIG (config has set fields that this
 library does not know), or EMFILE (4096 pools). A lack of address space, heap, or huge pages is ENOMEM,
 and a limit of file sizes is EFBIG. All other errors are the system's. After an error *pool is NULL.
 */
int pageset_create(const struct pageset_config *config, struct pageset_pool **pool);

/*
 Destroys a pool and unmaps its memory. All of its pages must have been freed. O(pages that were touched).
 No other thread may be inside of a call on this pool; later calls get EBADF.

 Errors: EBUSY (pages are handed out; nothing has changed), EBADF, EPERM.
 */
int pageset_destroy(struct pageset_pool *pool);

/*
 Allocates a block of 4 KiB << order (order 0 to 10), aligned to its size. Its contents are unspecified.
 Writes its address to *pages, unless it fails. O(1), usually a few nanoseconds.

 Errors: EINVAL (order, or pages is NULL), ENOMEM (no such block is free), EDQUOT (the capacity is used
 up), EAGAIN (in a signal handler only), EBADF, EPERM.
 */
int pageset_alloc(struct pageset_pool *pool, unsigned int order, void **pages);

/*
 Does what pageset_alloc does, with all bytes zero. Memory that is known to be zero is not cleared again.

 Errors: as pageset_alloc.
 */
int pageset_alloc_zeroed(struct pageset_pool *pool, unsigned int order, void **pages);

/*
 Allocates exactly page_count contiguous pages of 4 KiB, up to all of the pool, aligned to a page. Their
 contents are unspecified. Free them by pageset_free_exact or pageset_free_run.

 Errors: EINVAL (page_count is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_exact(struct pageset_pool *pool, size_t page_count, void **pages);

/*
 Allocates contiguous bytes, rounded up to pages of 4 KiB, up to all of the pool, aligned to a page. Their
 contents are unspecified. Free them by pageset_free_run. Up to 4 MiB, it costs as much as a block. Larger
 runs need a search, which takes longer in a larger pool.

 Errors: EINVAL (bytes is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_run(struct pageset_pool *pool, size_t bytes, void **pages);

/*
 Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start. A pool of 1 GiB or more itself
 begins at a multiple of 1 GiB if there is address space. The contents are unspecified. Free the GiB by
 pageset_free_run. pageset_get_backing tells whether the pool has pages of 1 GiB, and how much of it is in
 huge pages; pageset_collapse asks for transparent ones.

 Errors: EINVAL (pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_gib(struct pageset_pool *pool, void **pages);

/*
 Does what pageset_alloc_run does, with all bytes zero. Memory that is known to be zero is not cleared
 again.

 Errors: as pageset_alloc_run.
 */
int pageset_alloc_run_zeroed(struct pageset_pool *pool, size_t bytes, void **pages);

/*
 Does what pageset_alloc_run does, at an address that is a multiple of align bytes, a power of two. A pool
 begins at a multiple of 4 MiB. If align is more, the pool looks for a run that is longer by align, and frees
 its ends.

 Errors: EINVAL (align is no power of two); otherwise as pageset_alloc_run.
 */
int pageset_alloc_run_aligned(struct pageset_pool *pool, size_t bytes, size_t align, void **pages);

/*
 Does what pageset_alloc_run_aligned does, with all bytes zero. Memory that is known to be zero is not
 cleared again.

 Errors: as pageset_alloc_run_aligned.
 */
int pageset_alloc_run_aligned_zeroed(struct pageset_pool *pool, size_t bytes, size_t align, void **pages);

/*
 Allocates the block of 4 KiB << order that begins `frame` pages of 4 KiB after the pool's start, if all of
 it is free. It empties all caches first, so it is slow.

 Errors: EBUSY (not all of it is free), EINVAL (order, no block begins at this frame, or pages is NULL),
 EDQUOT, EBADF, EPERM.
 */
int pageset_alloc_at(struct pageset_pool *pool, size_t frame, unsigned int order, void **pages);

/*
 Allocates up to page_count single pages of 4 KiB and writes their addresses to the array `pages`. *got is
 their number: fewer than page_count only if memory or capacity is short, and 0 if it fails. Free each page
 separately, with order 0.

 Errors: as pageset_alloc, if no page at all was allocated. With page_count 0 there is no error.
 */
int pageset_alloc_bulk(struct pageset_pool *pool, size_t page_count, void **pages, size_t *got);

/*
 Frees a block of 4 KiB << order, on any thread. O(1), usually a few nanoseconds.

 Errors; each leaves everything unchanged: EINVAL (order, no page of this pool, inside of a block, free
 already, or handed out with another order), EBADF, EPERM. Two threads that free the same block at the same
 moment may both get 0; the pool then counts a bad free later.
 */
int pageset_free(struct pageset_pool *pool, void *pages, unsigned int order);

/*
 Frees page_count contiguous pages. They must be handed out as that many: by pageset_alloc_exact, after
 pageset_shrink, or as a block of 1 << order pages.

 Errors; each leaves everything unchanged: as pageset_free.
 */
int pageset_free_exact(struct pageset_pool *pool, void *pages, size_t page_count);

/*
 Frees all pages that are handed out at this address: a block, exact pages, or a run. With pageset_find, a
 program can free pages by a pointer alone.

 Errors; each leaves everything unchanged: EINVAL (no pages that are handed out begin here), EBADF, EPERM.
 */
int pageset_free_run(struct pageset_pool *pool, void *pages);

/*
 Frees page_count contiguous pages like pageset_free_exact, and returns their memory to the system at once,
 as for the pages of a balloon. The pool then knows that they are zero. *returned_bytes (may be NULL) is
 the number of returned bytes. It is 0 where nothing goes back (see pageset_trim), and if the system keeps
 the pages. 2 MiB take about 20 us.

 Errors; each leaves everything unchanged: as pageset_free.
 */
int pageset_discard(struct pageset_pool *pool, void *pages, size_t page_count, size_t *returned_bytes);

/*
 Returns the memory of count of page_count contiguous pages to the system, beginning at index first. The
 program keeps all pages. Those that went back read as zeros, and take memory again when they are written.
 *returned_bytes (may be NULL) is the number of returned bytes. It is 0, and nothing has changed, where nothing
 goes back (see pageset_trim), and if the system keeps the pages.

 Errors; each leaves everything unchanged: EINVAL (page_count pages are not handed out here, or the part
 reaches beyond page_count), EBADF, EPERM.
 */
int pageset_give_back(struct pageset_pool *pool,
                      void *pages,
                      size_t page_count,
                      size_t first,
                      size_t count,
                      size_t *returned_bytes);

/*
 Splits page_count contiguous pages into two parts. The first keep_count stay where they are, and *rest
 (may be NULL) is the address of the others. Free each part separately.

 Errors; each leaves everything unchanged: EINVAL (page_count pages are not handed out here, or a part
 would be empty), EBADF, EPERM.
 */
int pageset_split(struct pageset_pool *pool, void *pages, size_t page_count, size_t keep_count, void **rest);

/*
 Frees page_count single pages of 4 KiB. It stops at the first page that cannot be freed. *freed is the
 number of freed pages, and so the index of that page. freed may be NULL.

 Errors: as pageset_free, for that page; EINVAL if pages is NULL.
 */
int pageset_free_bulk(struct pageset_pool *pool, size_t page_count, void *const *pages, size_t *freed);

/*
 Keeps keep_count of page_count contiguous pages, beginning at index keep_first, and frees the others at
 once. *kept (may be NULL) is the address of the kept pages. Free them by pageset_free_exact.

 Errors; each leaves everything unchanged: EINVAL (page_count pages are not handed out here, keep_count is
 0, or the kept pages reach beyond page_count), EBADF, EPERM.
 */
int pageset_shrink(struct pageset_pool *pool,
                   void *pages,
                   size_t page_count,
                   size_t keep_first,
                   size_t keep_count,
                   void **kept);

/*
 Makes the first `bytes` of the pool resident, with `threads` threads, until the next pageset_trim.
 Contents do not change, so this may run while the pool is used. progress (may be NULL) is called with
 context about every 32 MiB. *done_bytes (may be NULL) is the number of resident bytes.

 Errors: EINVAL (no thread), ECANCELED (progress ended it), ENOMEM or another error of the system, EBADF,
 EPERM. Memory that was made resident stays resident. If a thread cannot be started, the others do its
 part. Starting a thread takes memory of the heap; without it, the program ends. With 1 thread, none is
 started.
 */
int pageset_populate(struct pageset_pool *pool,
                     size_t bytes,
                     unsigned int threads,
                     pageset_progress progress,
                     void *context,
                     size_t *done_bytes);

/*
 Asks the system for huge pages in place of the pool's small pages. This also works where the system gives no
 huge pages by itself, as for a memfd. Contents do not change, so this may run while the pool is used. Each
 2 MiB that were used become resident as a whole. *huge_bytes (may be NULL) is the number of bytes that are now
 in huge pages. It is 0 before Linux 6.1, and for a pinned pool, because a huge page is another page behind the
 address. Some 100 us for each 2 MiB.

 Errors: EBADF, EPERM.
 */
int pageset_collapse(struct pageset_pool *pool, uint64_t *huge_bytes);

/*
 Returns all free memory to the system now. *returned_bytes (may be NULL) is the number of returned bytes.
 Each 2 MiB take about 20 us.

 Errors: EBADF, EPERM.
 */
int pageset_trim(struct pageset_pool *pool, uint64_t *returned_bytes);

/*
 Scans once for idle memory, as the pool's thread does: for pools made with PAGESET_WORKER_NONE.
 *returned_bytes (may be NULL) is the number of returned bytes. *more (may be NULL) is 1 if more memory
 will go back, otherwise 0.

 Errors: EBADF, EPERM.
 */
int pageset_tick(struct pageset_pool *pool, uint64_t *returned_bytes, int *more);

/*
 Takes free memory out of service until at most `bytes` are in service, or puts some back, up to the size
 that the pool was made with. *bytes_in_service (may be NULL) is the number of bytes in service afterwards.
 If too little is free, it is more than `bytes`; the capacity still falls, and this can be called again.

 Errors: EBADF, EPERM.
 */
int pageset_resize(struct pageset_pool *pool, size_t bytes, size_t *bytes_in_service);

/*
 Makes this process, a child of fork, the owner of its parent's pool, when the parent has ended: for a
 program that makes its pool before daemon(3). Waits up to wait_ns nanoseconds for the end of the parent.
 From then on, everything works as it did in the parent, also a grandparent's pool that the parent did not
 take over. The child has the pages that the forking thread had; those of other threads stay in use. A
 registration with a device does not follow. In the process that has the pool, it does nothing.

 Errors; each leaves everything unchanged: EBUSY (the process that has the pool is alive), EINVAL (the pool
 was not made with PAGESET_FORK_HAND_OVER), EPERM (the fork was not noticed), EBADF. A fork is noticed that
 fork(2) makes outside of a call on the pool. If the pool's thread cannot be started, the system's error.
 */
int pageset_take_over(struct pageset_pool *pool, uint64_t wait_ns);

/*
 Sets the policy for idle memory, from the next scan on. It uses these fields of *config:
 return_interval_ns, return_bytes_per_second, keep_bytes, prezero_blocks and part_bytes. config may be NULL
 for the defaults.

 Errors: as pageset_create for these fields, EBADF, EPERM.
 */
int pageset_set_returns(struct pageset_pool *pool, const struct pageset_config *config);

/*
 Sets the most bytes that may be handed out, caches included, up to the size of the pool. So a pool can
 grow that was made larger than capacity_bytes: address space that was never used costs nearly nothing, and
 the lowest pages are used first. If more is handed out already, allocations get EDQUOT until enough is
 freed. O(1).

 Errors: EBADF, EPERM.
 */
int pageset_set_capacity(struct pageset_pool *pool, size_t bytes);

/*
 Pins or unpins the pool. With pinned 1, the page behind every address stays the same from the return of
 this call on. With 0, memory may go back again. For a pool that is registered after it was made: pin it
 before, and unpin it when it is no longer registered.

 Errors: EINVAL (pinned is neither 0 nor 1), EBADF, EPERM.
 */
int pageset_set_pinned(struct pageset_pool *pool, int pinned);

/*
 Checks everything about the pool that a look can check; pageset_message says what is wrong. O(pages);
 exact only while no other thread uses the pool.

 Errors: EUCLEAN (a mistake in pageset, or overwritten memory), EBADF, EPERM.
 */
int pageset_validate(struct pageset_pool *pool);

/*
 Reads the counters and gauges of the pool. struct_bytes is sizeof(pageset_stats).

 Errors: EINVAL (stats is NULL, or struct_bytes is too small), EBADF, EPERM.
 */
int pageset_get_stats(struct pageset_pool *pool, struct pageset_stats *stats, size_t struct_bytes);

/*
 Reads a counter of the allocator of pageblocks by name: "adopted", "claimed", "published", "closed",
 "settled", "rescued", "fallbacks", "retyped", "double_frees", "damaged", "line_transfers",
 "contended_lines", "below_low", "failed". The guide to the C library explains each.

 Errors: ENOENT (no counter has this name), EINVAL (NULL), EBADF, EPERM.
 */
int pageset_get_counter(struct pageset_pool *pool, const char *name, uint64_t *value);

/*
 Reports the memory that the pool really has. struct_bytes is sizeof(pageset_backing). It reads
 /proc/self/smaps: O(mappings of the process). In a child of fork it reports the child's own memory.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (backing is NULL, or
 struct_bytes is too small), EBADF.
 */
int pageset_get_backing(struct pageset_pool *pool, struct pageset_backing *backing, size_t struct_bytes);

/*
 Reports the pool's resident memory for each node, at most nodes_max of them. *count is the number of
 nodes. If it is more than nodes_max, the others were not written. It is 0 if the kernel does not tell.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (NULL), EBADF.
 */
int pageset_get_nodes(struct pageset_pool *pool, struct pageset_node *nodes, size_t nodes_max, size_t *count);

/*
 The version of the library, such as "0.1.0".
 */
const char *pageset_version(void);

/*
 *order is the smallest order whose block holds this many bytes: 0 for up to 4096, 10 for up to 4 MiB.

 Errors: EINVAL (bytes is 0 or more than 4 MiB, or order is NULL).
 */
int pageset_order_for_bytes(size_t bytes, unsigned int *order);

/*
 Finds the pool that has handed out the pages at an address. *pool is that pool, *bytes the size of the
 pages. Both may be NULL. It is for programs that keep only a pointer: they free by pageset_find and
 pageset_free_run. It takes a few nanoseconds for the first pools of a program.

 Errors: EINVAL (no pages that are handed out begin here). Then *pool is NULL, and *bytes is 0.
 */
int pageset_find(const void *pages, struct pageset_pool **pool, size_t *bytes);

/*
 *page_count is the number of pages of 4 KiB in the pool.

 Errors: EINVAL (page_count is NULL), EBADF.
 */
int pageset_get_page_count(struct pageset_pool *pool, size_t *page_count);

/*
 *start is the start of the pool. A page's distance from it is its offset in the pool's file, if there is
 one.

 Errors: EINVAL (start is NULL), EBADF.
 */
int pageset_get_start(struct pageset_pool *pool, void **start);

/*
 *memfd is the file of a pool that was made with PAGESET_BACKING_MEMFD or PAGESET_BACKING_HUGETLB, for other
 processes to map; of huge pages, only whole ones. It is closed with the pool, so pass on a dup of it. No
 process may change the bytes of free pages through it: the pool knows some of them to be zero.

 Errors: ENOTSUP (another backing), EINVAL (memfd is NULL), EBADF.
 */
int pageset_get_memfd(struct pageset_pool *pool, int *memfd);

/*
 *uses_rseq is 1 if the pool's fast path uses restartable sequences, 0 if it takes locks.

 Errors: EINVAL (uses_rseq is NULL), EBADF.
 */
int pageset_get_uses_rseq(struct pageset_pool *pool, int *uses_rseq);

/*
 Explains this thread's last failed call, and says what to do about it, in one English sentence without a
 newline. It is empty if no call has failed yet, and never NULL. It is valid until this thread calls
 pageset_message again, or ends.
 */
const char *pageset_message(void);

#ifdef __cplusplus
}
#endif

#endif
