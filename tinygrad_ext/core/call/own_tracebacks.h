/* What tracebacks.c gives to boundary.pyx. */
#ifndef TGX_OWN_TRACEBACKS_H
#define TGX_OWN_TRACEBACKS_H
#include <Python.h>

int tgx_set_own_folder(PyObject *folder);       /* frames of files below it are the library's; -1 and an error */
void tgx_show_all_frames(int full);
int tgx_all_frames_shown(void);
#endif
