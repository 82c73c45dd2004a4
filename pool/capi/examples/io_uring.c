/*
 * Pages of a pool as registered buffers of io_uring: the kernel pins the pages once, and not for each read
 * and write. The program needs no privileges, but the limit `ulimit -l` must have room for the buffers.
 * Build:
 *     cc io_uring.c $(pkg-config --cflags --libs pageset) -o io_uring
 *
 * A registered page stays allocated until the program closes the ring. The pool gives only free pages back to
 * the system. Source of the calls: io_uring(7), io_uring_setup(2), io_uring_register(2), io_uring_enter(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <pageset.h>

#define BUFFERS 8
#define ORDER 4 /* 64 KiB each */
#define BUFFER_BYTES ((size_t)4096 << ORDER)

/* Memory that the program shares with the kernel. */
struct ring {
    int file;
    unsigned *submission_tail, *submission_mask, *submission_index;
    unsigned *completion_head, *completion_tail, *completion_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *completions;
};

/* Returns 0, or a number of errno.h. ENOSYS and EPERM mean that the system refuses io_uring to this
 * program. */
static int open_ring(struct ring *ring, unsigned entries) {
    struct io_uring_params parameters;
    size_t bytes, completion_bytes;
    char *start, *completions;
    memset(&parameters, 0, sizeof parameters);
    ring->file = (int)syscall(SYS_io_uring_setup, entries, &parameters);
    if (ring->file < 0) return errno;
    bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    completion_bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_SQ_RING);
    completions = mmap(NULL, completion_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_CQ_RING);
    ring->requests = mmap(NULL, parameters.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_SQES);
    if (start == MAP_FAILED || completions == MAP_FAILED || ring->requests == MAP_FAILED) return errno;
    ring->submission_tail = (unsigned *)(start + parameters.sq_off.tail);
    ring->submission_mask = (unsigned *)(start + parameters.sq_off.ring_mask);
    ring->submission_index = (unsigned *)(start + parameters.sq_off.array);
    ring->completion_head = (unsigned *)(completions + parameters.cq_off.head);
    ring->completion_tail = (unsigned *)(completions + parameters.cq_off.tail);
    ring->completion_mask = (unsigned *)(completions + parameters.cq_off.ring_mask);
    ring->completions = (struct io_uring_cqe *)(completions + parameters.cq_off.cqes);
    return 0;
}

/* Transfers between the file and the registered buffer with this index. Returns the number of bytes, or a
 * negative number of errno.h. */
static int transfer(struct ring *ring, unsigned char operation, int file, void *buffer, unsigned index, size_t offset) {
    const unsigned tail = *ring->submission_tail, slot = tail & *ring->submission_mask;
    struct io_uring_sqe *request = &ring->requests[slot];
    unsigned head;
    int result;
    memset(request, 0, sizeof *request);
    request->opcode = operation;
    request->fd = file;
    request->addr = (unsigned long)buffer;
    request->len = BUFFER_BYTES;
    request->off = offset;
    request->buf_index = (unsigned short)index;
    ring->submission_index[slot] = slot;
    __atomic_store_n(ring->submission_tail, tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring->file, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) return -errno;
    head = *ring->completion_head;
    if (head == __atomic_load_n(ring->completion_tail, __ATOMIC_ACQUIRE)) return -EAGAIN;
    result = ring->completions[head & *ring->completion_mask].res;
    __atomic_store_n(ring->completion_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

static int failed(const char *what, int error) {
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(error), pageset_message());
    return 1;
}

int main(void) {
    struct iovec buffers[BUFFERS];
    struct ring ring;
    pageset_config config;
    pageset_pool *pool;
    size_t index, wrong = 0;
    int error, file, count;

    error = open_ring(&ring, BUFFERS);
    if (error == ENOSYS || error == EPERM) {
        printf("not run: no io_uring here: %s (see /proc/sys/kernel/io_uring_disabled)\n", strerror(error));
        return 0;
    }
    if (error) return failed("io_uring_setup", error);
    pageset_config_init(&config, sizeof config);
    config.bytes = (size_t)16 << 20;
    /* A child would get copies of pages that the kernel writes to. */
    config.fork = PAGESET_FORK_HIDE;
    error = pageset_create(&config, &pool);
    if (error) return failed("create", error);
    for (index = 0; index < BUFFERS; index++) {
        error = pageset_alloc(pool, ORDER, &buffers[index].iov_base);
        if (error) return failed("alloc", error);
        buffers[index].iov_len = BUFFER_BYTES;
    }
    if (syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_BUFFERS, buffers, BUFFERS) < 0)
        return failed("io_uring_register (see ulimit -l)", errno);

    file = memfd_create("pages", MFD_CLOEXEC);
    if (file < 0) return failed("memfd_create", errno);
    /* Write the first half of the buffers to the file, and read the file into the second half. */
    for (index = 0; index < BUFFERS / 2; index++) {
        memset(buffers[index].iov_base, (int)index + 1, BUFFER_BYTES);
        count = transfer(&ring, IORING_OP_WRITE_FIXED, file, buffers[index].iov_base, (unsigned)index, index * BUFFER_BYTES);
        if (count != (int)BUFFER_BYTES) return failed("write", count < 0 ? -count : EIO);
    }
    for (index = 0; index < BUFFERS / 2; index++) {
        const size_t into = BUFFERS / 2 + index;
        count = transfer(&ring, IORING_OP_READ_FIXED, file, buffers[into].iov_base, (unsigned)into, index * BUFFER_BYTES);
        if (count != (int)BUFFER_BYTES) return failed("read", count < 0 ? -count : EIO);
        wrong += memcmp(buffers[index].iov_base, buffers[into].iov_base, BUFFER_BYTES) != 0;
    }
    printf("%d buffers of %lu KiB, %lu wrong\n", BUFFERS / 2, (unsigned long)(BUFFER_BYTES >> 10), (unsigned long)wrong);

    /* The kernel releases the pages. After that, the program may free them. */
    if (syscall(SYS_io_uring_register, ring.file, IORING_UNREGISTER_BUFFERS, NULL, 0) < 0) return failed("unregister", errno);
    close(ring.file);
    close(file);
    for (index = 0; index < BUFFERS; index++) {
        error = pageset_free(pool, buffers[index].iov_base, ORDER);
        if (error) return failed("free", error);
    }
    error = pageset_destroy(pool);
    if (error) return failed("destroy", error);
    return wrong != 0;
}
