/* Where in the user's code are we: code object and instruction of the innermost Python frame outside the package. */
#ifndef TGX_FRAMES_H
#define TGX_FRAMES_H
#include <Python.h>

typedef struct { PyObject *code; int lasti; } tgx_place;   /* code is a new reference, or NULL */

tgx_place tgx_here(void);
int tgx_stack(tgx_place *to, int most);                     /* that frame and those below it, the package's left out; references are borrowed */
int tgx_called_by_us(void);                                /* whether the innermost Python frame is the package's */
int tgx_line_of(tgx_place place);                           /* line number in the code object's file */
void tgx_set_package_folder(PyObject *folder);             /* keeps a reference; frames of files below it are skipped */
#endif
