/* loaded.h - the object that contains this code stays in the process. */
#ifndef CC_OS_LOADED_H
#define CC_OS_LOADED_H

/* From now on dlclose does not unmap it. The shared library is linked that way; this is for a shared object of the
 * program that contains the static library. It may wait for a dlopen on another thread, and for the constructors that
 * run there: the caller holds no lock. */
void cc__loaded_keep(void);

#endif
