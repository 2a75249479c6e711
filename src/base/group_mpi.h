/* group_mpi - the group that MPI makes; only group_open.c uses it, in builds with MPI. */
#ifndef TP_GROUP_MPI_H
#define TP_GROUP_MPI_H

#include "group.h"

tp_status tp__group_mpi(tp__group **group, tp_error *err) TP_CHECKED;

#endif
