// For LD_PRELOAD: another program makes $VICTIM right after the $NTH look at it; with $NO_MARKS, the kernel's file for marks
// cannot be opened.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct statx;

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *found)
{
	static int (*real)(int, const char *, int, unsigned, struct statx *);
	static int looks;
	const char *victim = getenv("VICTIM");
	int result, cause, file;

	if (!real)
		real = (int (*)(int, const char *, int, unsigned, struct statx *))dlsym(RTLD_NEXT, "statx");
	result = real(directory, path, flags, mask, found);
	cause = errno;
	// Rust asks with an address that is none whether the call exists.
	if (victim && (uintptr_t)path > 4096 && !strcmp(path, victim) && ++looks == atoi(getenv("NTH"))) {
		file = open(victim, O_CREAT | O_WRONLY | O_EXCL, 0644);
		if (file >= 0) {
			if (write(file, "precious\n", 9) != 9)
				abort();
			close(file);
		}
	}
	errno = cause;
	return result;
}

int open64(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	const char *name = strrchr(path, '/');
	va_list list;
	mode_t mode = 0;

	if (getenv("NO_MARKS") && name && !strcmp(name, "/trace_marker_raw")) {
		errno = EACCES;
		return -1;
	}
	if (!real)
		real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	va_start(list, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(list, mode_t);
	va_end(list);
	return real(path, flags, mode);
}
