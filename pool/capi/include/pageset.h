/*
 * pageset: a page allocator for programs. A pool hands out pages of 4 KiB to 4 MiB. Link with -lpageset
 * (pkg-config pageset, find_package(pageset)).
 *
 * Results. Every function that can fail returns 0 or a number of errno.h, and pageset_message explains the
 * error. After an error nothing has changed, unless the function's description says otherwise. A function
 * writes its results to variables, and the caller passes the addresses of these variables. EBADF means that
 * the handle names no pool, or a pool of another copy of the library. EPERM means that this process is a
 * child of fork, and the pool belongs to the child's parent. ENOTRECOVERABLE means that pageset itself has a
 * bug.
 *
 * Promises. The caller promises that a pointer to a variable, struct, array or string is NULL or valid, and
 * that no other thread changes the data during the call. Handles and pages may be any pointer: the library
 * looks each handle and page up, and returns an error for a wrong pointer.
 *
 * Threads. Any thread may call every function at any time, with two exceptions. While a thread destroys a
 * pool, no other thread may be inside of a call on the pool. Two threads must not free the same pages at the
 * same moment. Pages belong to no thread.
 *
 * Signal handlers. A handler may call pageset_alloc, pageset_alloc_zeroed and pageset_free, and no other
 * function. If the handler has interrupted its thread inside of a call on the same pool, an allocation by the
 * handler may get EAGAIN. A free by such a handler returns 0, and the pages are freed a little later. The
 * pool's thread blocks all signals.
 *
 * The heap. Only pageset_create, pageset_get_backing and pageset_get_nodes use the heap. If the heap is
 * exhausted, these functions return ENOMEM. A free never uses the heap. To start a thread, the system's
 * libraries use the heap. If the heap is exhausted, these libraries end the program. pageset_create with
 * PAGESET_WORKER_THREAD starts a thread, and so do pageset_set_returns with PAGESET_WORKER_THREAD, and
 * pageset_populate with more than one thread.
 *
 * Unloading. The shared library stays in memory after dlclose, because threads may have been interrupted in
 * its code.
 *
 * Fork. A child of fork can read pages of its parent's pools, except with PAGESET_FORK_HIDE. In the child,
 * every call that would change a pool of the parent or look into this pool gets EPERM. The child may make
 * pools of its own. With PAGESET_FORK_HAND_OVER, the child may take a pool over when the parent has ended.
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
 Number of bytes of a page. A page is a block of order 0.
 */
#define PAGESET_PAGE_BYTES 4096

/*
 The largest order: a block of 4 MiB.
 */
#define PAGESET_MAX_ORDER 10

/*
 Number of pages of the largest block. pageset_alloc_exact also allocates longer runs.
 */
#define PAGESET_MAX_PAGE_COUNT 1024

/*
 The largest number of pools that a process may have at a time.
 */
#define PAGESET_MAX_POOLS 4096

/*
 Private memory, in transparent huge pages where the system has them.
 */
#define PAGESET_BACKING_THP 0

/*
 Huge pages of huge_page_bytes each that the administrator reserved. pageset_create takes all huge pages of
 the pool. The pages belong to a file: see pageset_get_memfd.
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
 PAGESET_BACKING_HUGETLB if the system has enough hugetlb pages for the whole pool, otherwise
 PAGESET_BACKING_THP. The pool also gets PAGESET_BACKING_THP if any other error prevents hugetlb, or if
 fork is neither PAGESET_FORK_HIDE nor PAGESET_FORK_COPY. page_bytes of pageset_get_backing tells which of
 the two backings the pool got. With PAGESET_BACKING_HUGETLB, children of fork share the parent's pages.
 */
#define PAGESET_BACKING_HUGETLB_OR_THP 4

/*
 Each page comes from the node of the CPU that first touches the page.
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
 A child of fork sees a copy of the pages. The pages of a memfd and of hugetlb are not copied: the child
 shares these pages with its parent.
 */
#define PAGESET_FORK_COPY 0

/*
 A child of fork does not see the pages, and the fork is faster.
 */
#define PAGESET_FORK_HIDE 1

/*
 A child of fork sees a copy, as with PAGESET_FORK_COPY. When the parent has ended, the child may become
 the pool's owner by pageset_take_over. The pool's memory must be private and not locked.
 */
#define PAGESET_FORK_HAND_OVER 2

/*
 The memory may be swapped out.
 */
#define PAGESET_RESIDENCY_PAGEABLE 0

/*
 pageset_create makes all memory of the pool resident, and locks it. The pool gives no memory back to the
 system.
 */
#define PAGESET_RESIDENCY_LOCKED 1

/*
 Restartable sequences if the system has them and the environment variable PAGESET_RSEQ is not 0, otherwise
 locks.
 */
#define PAGESET_FAST_PATH_AUTO 0

/*
 A lock for each CPU. Only a thread that empties the arrays of all CPUs waits for a CPU's lock.
 */
#define PAGESET_FAST_PATH_LOCKS 1

/*
 A thread of the pool gives idle memory back to the system, and sleeps while no memory is idle.
 */
#define PAGESET_WORKER_THREAD 0

/*
 The pool has no thread. The program calls pageset_tick.
 */
#define PAGESET_WORKER_NONE 1

/*
 The value of keep_bytes that stands for 2 % of the pool, at most 32 MiB.
 */
#define PAGESET_KEEP_DEFAULT UINT64_MAX

/*
 A pool, made by pageset_create and destroyed by pageset_destroy. The pointer is only a number and must not
 be followed. A call with a wrong, old or NULL pointer gets EBADF.
 */
typedef struct pageset_pool pageset_pool;

/*
 The type of pageset_config's on_shortage.
 */
typedef int (*pageset_shortage)(void *context, size_t bytes);

/*
 The configuration of a pool. pageset_config_init fills a configuration with the defaults. Each field's
 description ends with its default, in parentheses.
 */
typedef struct pageset_config {
  /*
   The value of sizeof(pageset_config) when the program was built.
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
   The most bytes that the program and the pool's caches may have together, rounded down to pages of 4096
   bytes. 0 stands for the pool's size. With 1 to 4095, every allocation fails. (0)
   */
  size_t capacity_bytes;
  /*
   Bytes of a huge page if backing is PAGESET_BACKING_HUGETLB or PAGESET_BACKING_HUGETLB_OR_THP: 2 MiB or
   1 GiB. (2 MiB)
   */
  size_t huge_page_bytes;
  /*
   The program's own memory, which the pool uses instead of the system's memory. The region has `bytes`
   bytes and is aligned to 4 MiB. Until the pool is destroyed, only the pool may use the region. With a
   region, `backing` is ignored. NULL stands for memory of the system. (NULL)
   */
  void *region;
  /*
   The nodes, if numa is PAGESET_NUMA_INTERLEAVE. Bit n stands for node n. (0)
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
   Nanoseconds between two scans for idle memory. A pageblock of 2 MiB goes back when two scans in a row
   found the pageblock free. (100 ms)
   */
  uint64_t return_interval_ns;
  /*
   The most bytes of whole pageblocks that the pool gives back to the system in one second. Each scan may
   give back at least one pageblock. A second limit of the same size applies to parts of pageblocks (see
   part_bytes). (4 GiB)
   */
  uint64_t return_bytes_per_second;
  /*
   The bytes of whole free pageblocks that scans leave resident, or PAGESET_KEEP_DEFAULT.
   (PAGESET_KEEP_DEFAULT)
   */
  uint64_t keep_bytes;
  /*
   The most free pageblocks of 2 MiB that each scan clears, so that pageset_alloc_zeroed need not clear
   these pageblocks. (0)
   */
  uint32_t prezero_blocks;
  /*
   With 1, every address keeps its page until the pool is destroyed, and the pool gives no memory back to
   the system. Use 1 if you register the whole pool: as buffers of io_uring, or memory of RDMA, AF_XDP,
   vhost or VFIO. Otherwise use 0. (0)
   */
  uint32_t pinned;
  /*
   Scans give back parts of at least this number of contiguous free bytes, although other pages of the
   pageblock are in use. With 4096, scans give back single pages. With 0, scans give back no parts. To
   give a part back costs about a microsecond. Each page that went back costs a page fault at its next
   use. (0)
   */
  uint64_t part_bytes;
  /*
   A function of the program that frees pages, for example by evicting from a cache. An allocation that
   finds no memory, or no capacity, calls on_shortage. The allocating thread passes shortage_context and
   the number of wanted bytes. The thread holds no lock of the pool, so on_shortage may call the pool. If
   on_shortage returns another number than 0, the allocation tries again. on_shortage must return 0 if it
   has freed nothing. Allocations inside of on_shortage, also from other pools, may fail, and do not call
   on_shortage. on_shortage must not wait for a lock that its thread holds during an allocation, because
   the wait would never end. on_shortage must return, without longjmp or a C++ exception. (NULL)
   */
  pageset_shortage on_shortage;
  /*
   The first argument of on_shortage. (NULL)
   */
  void *shortage_context;
} pageset_config;

/*
 Reports the progress of pageset_populate: the number of resident bytes, and of all bytes to populate. Any
 thread of pageset_populate may call the function, but two calls never overlap. If the function returns
 another number than 0, pageset_populate ends its work. The function must return, without longjmp or a C++
 exception.
 */
typedef int (*pageset_progress)(void *context, size_t done_bytes, size_t total_bytes);

/*
 The state of a pool at one moment. A page has 4 KiB. While other threads use the pool, numbers of pages
 may be inexact by a few pages.
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
   The largest order of a free block, or -1 if no page is free.
   */
  int32_t largest_free_order;
  /*
   Pages that the program has allocated since it made the pool (kernel: pgalloc_normal).
   */
  uint64_t pgalloc;
  /*
   Pages that the program has freed (kernel: pgfree).
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
   The most pages that the program and the arrays may have together.
   */
  uint64_t capacity_pages;
  /*
   How often an array fetched blocks from the allocator behind the arrays.
   */
  uint64_t array_refills;
  /*
   How often blocks went to the allocator behind the arrays because an array had no room.
   */
  uint64_t array_flushes;
  /*
   How often the pool emptied the arrays of all CPUs.
   */
  uint64_t array_drains;
  /*
   The number of restarted sequences, in all pools of the process.
   */
  uint64_t rseq_restarts;
  /*
   Number of frees that the pool refused late, while the pool emptied an array. The pool refuses a free
   late if two threads freed the same pages at the same moment.
   */
  uint64_t bad_frees;
  /*
   Bytes that allocations of zeroed memory have cleared.
   */
  uint64_t cleared_bytes;
  /*
   Bytes that the pool has cleared in idle time.
   */
  uint64_t prezeroed_bytes;
  /*
   Bytes that the pool gave back to the system.
   */
  uint64_t returned_bytes;
  /*
   Bytes that the pool gave back to the system and used again later.
   */
  uint64_t refaulted_bytes;
  /*
   Nanoseconds that the pool spent to give memory back to the system.
   */
  uint64_t return_time_ns;
  /*
   Bytes of mapped metadata, without the C library's own table of 2 bytes for each page. Only the used
   part of the metadata is resident.
   */
  uint64_t metadata_bytes;
  /*
   How often a drain failed because the system refused membarrier(2). The system refuses membarrier(2) if
   a filter of system calls was installed after the pool was made. While drains fail, pages in arrays
   neither form larger blocks nor go back to the system.
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
   Mapped bytes: the pool's size.
   */
  uint64_t mapped_bytes;
  /*
   Bytes that are resident now.
   */
  uint64_t resident_bytes;
  /*
   Bytes that are resident in huge pages, transparent or hugetlb.
   */
  uint64_t huge_bytes;
  /*
   Bytes that are resident in pages of 4 KiB.
   */
  uint64_t small_bytes;
  /*
   Bytes that are locked in memory.
   */
  uint64_t locked_bytes;
  /*
   The page size of the mapping. For a pool with PAGESET_BACKING_HUGETLB_OR_THP, page_bytes tells which
   backing the pool got. A size of 4096 means transparent huge pages, which do not change a mapping's
   page size.
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
 Fills *config with the defaults. Pass sizeof(pageset_config) as struct_bytes.

 Errors: EINVAL (config is NULL, or struct_bytes is smaller than the first two fields), E2BIG.
 */
int pageset_config_init(struct pageset_config *config, size_t struct_bytes);

/*
 Makes a pool with this configuration, or with the defaults of pageset_config_init if config is NULL.
 Writes the pool's handle to *pool. A page takes memory when the program first touches it. The pool's
 tables take 20 KiB of address space, and 617 KiB more for each GiB of the pool. Only the used parts of the
 tables take memory: about 100 KiB in a new pool of 1 GiB.

 Errors: EINVAL (a field of config has a bad value; pageset_message names the field), E2BIG (config has set
 fields that this library does not know), or EMFILE (the process has 4096 pools). If address space, heap or
 huge pages are short, the error is ENOMEM. If a limit of file sizes is too low, the error is EFBIG. All
 other errors are the system's. After an error, *pool is NULL.
 */
int pageset_create(const struct pageset_config *config, struct pageset_pool **pool);

/*
 Destroys a pool, and unmaps its memory unless the memory is a region of the program. The program must have
 freed all pages of the pool. No other thread may be inside of a call on this pool. Later calls on the
 destroyed pool get EBADF. O(pages that were touched).

 Errors: EBUSY (the program has not freed all pages), EBADF, EPERM.
 */
int pageset_destroy(struct pageset_pool *pool);

/*
 Allocates a block of 4 KiB << order (order 0 to 10), aligned to its size. The contents of the block are
 unspecified. Writes the block's address to *pages, unless the call fails. O(1), usually a few nanoseconds.

 Errors: EINVAL (order is above 10, or pages is NULL), ENOMEM (no block of this order is free), EDQUOT (the
 capacity is used up), EAGAIN (only in a signal handler), EBADF, EPERM.
 */
int pageset_alloc(struct pageset_pool *pool, unsigned int order, void **pages);

/*
 Does the same as pageset_alloc, and makes all bytes of the block zero. The call does not clear memory that
 the pool knows to be zero.

 Errors: as pageset_alloc.
 */
int pageset_alloc_zeroed(struct pageset_pool *pool, unsigned int order, void **pages);

/*
 Allocates exactly page_count contiguous pages of 4 KiB, up to the whole pool, aligned to a page. The
 contents of the pages are unspecified. Free the pages by pageset_free_exact or pageset_free_run.

 Errors: EINVAL (page_count is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_exact(struct pageset_pool *pool, size_t page_count, void **pages);

/*
 Allocates contiguous memory of `bytes`, rounded up to pages of 4 KiB, up to the whole pool, aligned to a
 page. The contents of the run are unspecified. Free the run by pageset_free_run. A run of more than 4 MiB
 needs a search, which takes longer in a larger pool.

 Errors: EINVAL (bytes is 0, or pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_run(struct pageset_pool *pool, size_t bytes, void **pages);

/*
 Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start. If there is enough address
 space, a pool of 1 GiB or more itself begins at a multiple of 1 GiB. The contents are unspecified. Free
 the memory by pageset_free_run. pageset_get_backing tells whether the pool has pages of 1 GiB, and how
 many bytes of the pool are in huge pages. pageset_collapse asks the system for transparent huge pages.

 Errors: EINVAL (pages is NULL); otherwise as pageset_alloc.
 */
int pageset_alloc_gib(struct pageset_pool *pool, void **pages);

/*
 Does the same as pageset_alloc_run, and makes all bytes of the run zero. The call does not clear memory
 that the pool knows to be zero.

 Errors: as pageset_alloc_run.
 */
int pageset_alloc_run_zeroed(struct pageset_pool *pool, size_t bytes, void **pages);

/*
 Does what pageset_alloc_run does, at an address that is a multiple of align bytes, a power of two. A pool
 begins at a multiple of 4 MiB. If the pool's beginning is no multiple of align, the pool looks for a run
 that is longer than `bytes` by align, and frees the two ends of the longer run.

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
 Allocates the block of 4 KiB << order that begins `frame` pages of 4 KiB after the pool's start, if all
 its pages are free. If some pages are not free, the call empties all caches and tries again, which is
 slow.

 Errors: EBUSY (a page of the block is in use), EINVAL (order is above 10, no block of this order begins at
 this frame, or pages is NULL), EDQUOT, EBADF, EPERM.
 */
int pageset_alloc_at(struct pageset_pool *pool, size_t frame, unsigned int order, void **pages);

/*
 Allocates up to page_count single pages of 4 KiB and writes their addresses to the array `pages`. *got is
 the number of allocated pages. *got is less than page_count if memory or capacity is short, and 0 if the
 call fails. Before the call returns fewer pages than page_count, the call passes the missing bytes to
 on_shortage, until on_shortage returns 0. Free each page separately, with order 0.

 Errors: as pageset_alloc, but only if no page was allocated. If page_count is 0, the call allocates
 nothing, which is no error.
 */
int pageset_alloc_bulk(struct pageset_pool *pool, size_t page_count, void **pages, size_t *got);

/*
 Frees a block of 4 KiB << order, on any thread. O(1), usually a few nanoseconds.

 Errors: EINVAL (order is above 10, or the program has no block of this order that begins at this address),
 EBADF, EPERM. An error changes nothing. If two threads free the same block at the same moment, both may
 get 0, and the pool later counts a bad free.
 */
int pageset_free(struct pageset_pool *pool, void *pages, unsigned int order);

/*
 Frees page_count contiguous pages. page_count must be the number of pages at the allocation, or after the
 last pageset_shrink, pageset_split or pageset_join.

 Errors: the errors of pageset_free. An error changes nothing.
 */
int pageset_free_exact(struct pageset_pool *pool, void *pages, size_t page_count);

/*
 Frees the block, the exact pages or the run that begins at this address. With pageset_find, a program can
 free pages by a pointer alone.

 Errors: EINVAL (the program has no pages that begin at this address), EBADF, EPERM. An error changes
 nothing.
 */
int pageset_free_run(struct pageset_pool *pool, void *pages);

/*
 Frees page_count contiguous pages like pageset_free_exact, and gives their memory back to the system at
 once. Use pageset_discard for pages that you do not need again soon, such as the pages of a balloon. The
 pool knows that pages that went back are zero. *returned_bytes (may be NULL) is the number of bytes that
 the call gave back. *returned_bytes is 0 if the pool gives no memory back (see pageset_trim), or if the
 system refuses the pages. To discard 2 MiB takes about 20 us.

 Errors: the errors of pageset_free. An error changes nothing.
 */
int pageset_discard(struct pageset_pool *pool, void *pages, size_t page_count, size_t *returned_bytes);

/*
 Gives the memory of `count` pages back to the system. These pages are a part of page_count contiguous
 pages, and begin at the index `first`. The program keeps all pages. The pages that went back read as
 zeros, and take memory again at the next write. *returned_bytes (may be NULL) is the number of bytes that
 the call gave back. *returned_bytes is 0, and nothing has changed, if the pool gives no memory back (see
 pageset_trim) or the system refuses the pages.

 Errors: EINVAL (the pages that begin here are not exactly page_count, or the part reaches beyond
 page_count), EBADF, EPERM. An error changes nothing.
 */
int pageset_give_back(struct pageset_pool *pool,
                      void *pages,
                      size_t page_count,
                      size_t first,
                      size_t count,
                      size_t *returned_bytes);

/*
 Splits page_count contiguous pages into two parts. The first part has keep_count pages, and *rest (may be
 NULL) is the address of the second part. Free each part separately.

 Errors: EINVAL (the pages that begin here are not exactly page_count, or a part would be empty), EBADF,
 EPERM. An error changes nothing.
 */
int pageset_split(struct pageset_pool *pool, void *pages, size_t page_count, size_t keep_count, void **rest);

/*
 Joins page_count contiguous pages with the next_count pages directly behind them, as the opposite of
 pageset_split. After pageset_join, the program frees all joined pages together, as page_count + next_count
 pages. The pages may come from two allocations.

 Errors: EINVAL (the pages that begin here are not exactly page_count, or the pages behind them are not
 exactly next_count), EBADF, EPERM. An error changes nothing.
 */
int pageset_join(struct pageset_pool *pool, void *pages, size_t page_count, size_t next_count);

/*
 Frees page_count single pages of 4 KiB. The call stops at the first page that the call cannot free. *freed
 (may be NULL) is the number of freed pages. After an error, *freed is the index of the page that the call
 could not free.

 Errors: the error of pageset_free for the page that the call could not free, or EINVAL if pages is NULL.
 */
int pageset_free_bulk(struct pageset_pool *pool, size_t page_count, void *const *pages, size_t *freed);

/*
 Keeps keep_count of page_count contiguous pages, beginning at index keep_first, and frees the other pages
 at once. *kept (may be NULL) is the address of the kept pages. Free the kept pages by pageset_free_exact.

 Errors: EINVAL (the pages that begin here are not exactly page_count, keep_count is 0, or the kept pages
 reach beyond page_count), EBADF, EPERM. An error changes nothing.
 */
int pageset_shrink(struct pageset_pool *pool,
                   void *pages,
                   size_t page_count,
                   size_t keep_first,
                   size_t keep_count,
                   void **kept);

/*
 Makes the first `bytes` of the pool resident, with `threads` threads. The memory stays resident until the
 next pageset_trim. The call does not change contents, so the pool may be in use. After about every 32 MiB,
 a thread calls progress (may be NULL) with context. *done_bytes (may be NULL) is the number of resident
 bytes.

 Errors: EINVAL (threads is 0), ECANCELED (progress ended the work), ENOMEM or another error of the system,
 EBADF, EPERM. After an error, memory that is resident stays resident. If the system cannot start a thread,
 the call's other threads do all the work. To start a thread, the system's libraries use the heap. If the
 heap is exhausted, the system's libraries end the program. If threads is 1, the call starts no thread.
 */
int pageset_populate(struct pageset_pool *pool,
                     size_t bytes,
                     unsigned int threads,
                     pageset_progress progress,
                     void *context,
                     size_t *done_bytes);

/*
 Asks the system to replace the pool's small pages by huge pages. The call also works where the system
 gives no huge pages on its own, for example for a memfd. The call does not change contents, so the pool
 may be in use. If a page of a pageblock of 2 MiB was used since the pageblock last went back to the
 system, the call tries to collapse the pageblock. A collapsed pageblock is resident as a whole.
 *huge_bytes (may be NULL) is the number of bytes that are now in huge pages. If the pool is not hugetlb,
 *huge_bytes is 0 before Linux 6.1, and for a pinned pool, because every address must keep its page. The
 call takes about 100 us for each 2 MiB.

 Errors: EBADF, EPERM.
 */
int pageset_collapse(struct pageset_pool *pool, uint64_t *huge_bytes);

/*
 Gives free memory back to the system now: whole pageblocks, and free parts of 64 KiB or more. A pool that
 is pinned, or made of hugetlb, locked memory or a region, gives nothing back. *returned_bytes (may be
 NULL) is the number of bytes that the call gave back. The call takes about 20 us for each 2 MiB.

 Errors: EBADF, EPERM.
 */
int pageset_trim(struct pageset_pool *pool, uint64_t *returned_bytes);

/*
 Scans once for idle memory, as the pool's thread does. Use pageset_tick for pools with
 PAGESET_WORKER_NONE. *returned_bytes (may be NULL) is the number of bytes that the scan gave back. *more
 (may be NULL) is 1 if a later scan may give back more memory, and otherwise 0.

 Errors: EBADF, EPERM.
 */
int pageset_tick(struct pageset_pool *pool, uint64_t *returned_bytes, int *more);

/*
 Takes free memory out of service until at most `bytes` are in service, or puts memory back into service,
 up to the size that the pool was made with. *bytes_in_service (may be NULL) is the number of bytes in
 service afterwards. If too little memory is free, *bytes_in_service is more than `bytes`, although the
 capacity falls to `bytes`. To take more memory out of service, call pageset_resize again after the program
 has freed pages.

 Errors: EBADF, EPERM.
 */
int pageset_resize(struct pageset_pool *pool, size_t bytes, size_t *bytes_in_service);

/*
 Makes this process, a child of fork, the owner of its parent's pool, when the parent has ended. Use
 pageset_take_over in a program that makes its pool before daemon(3). The call waits up to wait_ns
 nanoseconds for the end of the parent. After the call, the pool works in this process as before in the
 parent. The child has the pages that the forking thread had. The pages of the parent's other threads stay
 in use for ever. A child can also take over its grandparent's pool, if its parent did not take the pool
 over. If the pool was registered with a device, register the pool again. In the process that owns the
 pool, the call does nothing.

 Errors: EBUSY (the owner of the pool is alive), EINVAL (the pool was not made with
 PAGESET_FORK_HAND_OVER), EPERM, EBADF, and the system's error if the pool's thread cannot be started.
 EPERM means that the process did not fork by the C library's fork, or that a signal handler forked inside
 of a call on the pool. An error changes nothing.
 */
int pageset_take_over(struct pageset_pool *pool, uint64_t wait_ns);

/*
 Sets the policy for idle memory. The new policy applies from the next scan on. The call uses these fields
 of *config: worker, return_interval_ns, return_bytes_per_second, keep_bytes, prezero_blocks and
 part_bytes. If config is NULL, the call uses the defaults. With PAGESET_WORKER_THREAD, the call starts the
 pool's thread if the pool has no thread and the policy has work for a thread. With PAGESET_WORKER_NONE,
 the call ends the thread.

 Errors: as pageset_create for the used fields, the system's error if the thread cannot be started, EBADF,
 EPERM. An error changes nothing.
 */
int pageset_set_returns(struct pageset_pool *pool, const struct pageset_config *config);

/*
 Limits the bytes that the program and the pool's caches may have together, up to the size of the pool. For
 a pool that can grow, make a larger pool with a smaller capacity_bytes, and raise the capacity later.
 Unused address space costs nearly nothing, and the pool uses its lowest pages first. If more memory is in
 use than the new capacity, allocations get EDQUOT until the program has freed enough. O(1).

 Errors: EBADF, EPERM.
 */
int pageset_set_capacity(struct pageset_pool *pool, size_t bytes);

/*
 Pins or unpins the pool. When a call with pinned 1 has returned, every address of the pool keeps its page.
 After a call with pinned 0, memory may go back to the system again. Use pageset_set_pinned if you register
 the pool with a device for a time. Pin the pool before you register it with the device, and unpin the pool
 after you have unregistered it.

 Errors: EINVAL (pinned is neither 0 nor 1), EBADF, EPERM.
 */
int pageset_set_pinned(struct pageset_pool *pool, int pinned);

/*
 Checks the pool's tables. After an error, pageset_message says what is wrong. O(pages). The result is
 exact only while no other thread uses the pool.

 Errors: EUCLEAN (a mistake in pageset, or overwritten memory), EBADF, EPERM.
 */
int pageset_validate(struct pageset_pool *pool);

/*
 Reads the counters and gauges of the pool. Pass sizeof(pageset_stats) as struct_bytes.

 Errors: EINVAL (stats is NULL, or struct_bytes is too small), EBADF, EPERM.
 */
int pageset_get_stats(struct pageset_pool *pool, struct pageset_stats *stats, size_t struct_bytes);

/*
 Reads a counter of the allocator behind the arrays by its name: "adopted", "claimed", "published",
 "closed", "settled", "rescued", "fallbacks", "retyped", "double_frees", "damaged", "line_transfers",
 "contended_lines", "below_low", "failed". The book's page on the C library explains these counters.

 Errors: ENOENT (no counter has this name), EINVAL (name or value is NULL), EBADF, EPERM.
 */
int pageset_get_counter(struct pageset_pool *pool, const char *name, uint64_t *value);

/*
 Reports the memory that the pool really has. Pass sizeof(pageset_backing) as struct_bytes. The call reads
 /proc/self/smaps, so it takes time in proportion to the process's mappings. In a child of fork, the call
 reports the child's own memory.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (backing is NULL, or
 struct_bytes is too small), EBADF.
 */
int pageset_get_backing(struct pageset_pool *pool, struct pageset_backing *backing, size_t struct_bytes);

/*
 Reports the pool's resident memory for each node. Writes at most nodes_max entries. *count is the number
 of all nodes that have memory of the pool. *count may be more than nodes_max, and is 0 if the kernel does
 not tell the nodes of memory.

 Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (count is NULL, or nodes is
 NULL and nodes_max is not 0), EBADF.
 */
int pageset_get_nodes(struct pageset_pool *pool, struct pageset_node *nodes, size_t nodes_max, size_t *count);

/*
 The version of the library, such as "0.1.0".
 */
const char *pageset_version(void);

/*
 *order is the smallest order whose block holds `bytes` bytes: 0 for up to 4096, 10 for up to 4 MiB.

 Errors: EINVAL (bytes is 0 or more than 4 MiB, or order is NULL).
 */
int pageset_order_for_bytes(size_t bytes, unsigned int *order);

/*
 Finds the pool that the pages at an address belong to. *pool is this pool, and *bytes is the size of the
 pages. pool and bytes may be NULL. A program that keeps only a pointer can free its pages by pageset_find
 and pageset_free_run. The call takes a few nanoseconds if the pool is one of the program's first pools.

 Errors: EINVAL (the program has no pages that begin at this address). After EINVAL, *pool is NULL and
 *bytes is 0.
 */
int pageset_find(const void *pages, struct pageset_pool **pool, size_t *bytes);

/*
 *page_count is the number of pages of 4 KiB in the pool.

 Errors: EINVAL (page_count is NULL), EBADF.
 */
int pageset_get_page_count(struct pageset_pool *pool, size_t *page_count);

/*
 *start is the start of the pool. If the pool has a file, a page's distance from the start is its offset in
 the file.

 Errors: EINVAL (start is NULL), EBADF.
 */
int pageset_get_start(struct pageset_pool *pool, void **start);

/*
 *memfd is the file of a pool that was made with PAGESET_BACKING_MEMFD or PAGESET_BACKING_HUGETLB. Other
 processes can map the file. A mapping of huge pages must consist of whole huge pages. pageset_destroy
 closes the descriptor, so pass a dup of the descriptor to other processes. No process may change the bytes
 of free pages through the file, because the pool remembers which free pages are zero.

 Errors: ENOTSUP (another backing), EINVAL (memfd is NULL), EBADF.
 */
int pageset_get_memfd(struct pageset_pool *pool, int *memfd);

/*
 *uses_rseq is 1 if the pool's fast path uses restartable sequences, and 0 if the fast path uses locks.

 Errors: EINVAL (uses_rseq is NULL), EBADF.
 */
int pageset_get_uses_rseq(struct pageset_pool *pool, int *uses_rseq);

/*
 Explains this thread's last failed call in one line of English, and says what to do. The string is empty
 if no call has failed yet, and is never NULL. The string is valid until this thread calls pageset_message
 again, or ends.
 */
const char *pageset_message(void);

#ifdef __cplusplus
}
#endif

#endif
