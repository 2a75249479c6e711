/* group_open - whether this process was started as one of several; see group.h */
#include <stdlib.h>

#include "group_mpi.h"

/* Open MPI's mpirun, and those that speak PMI or PMIx. */
long tp__group_started(bool here)
{
  const char *size = getenv(here ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "OMPI_COMM_WORLD_SIZE");
  if (size == NULL && getenv("PMI_RANK") != NULL)
    size = getenv(here ? "MPI_LOCALNRANKS" : "PMI_SIZE");
  if (size == NULL && getenv("PMIX_RANK") != NULL)
    size = getenv(here ? "SLURM_NTASKS_PER_NODE" : "SLURM_NTASKS");
  long count = size != NULL ? strtol(size, NULL, 10) : 1;
  return count < 1 ? 1 : count;
}

tp_status tp__group_open(tp__group **group, tp_error *err)
{
  *group = NULL;
  long size = tp__group_started(false);
  if (size <= 1) return TP_OK;
  if (size > TP__PROCESSES_MAX)
    return tp__fail(err, TP_ERR_DEVICE, "%ld processes; %d at most can train together", size,
                    TP__PROCESSES_MAX);
#ifdef TP__MPI
  return tp__group_mpi(group, err);
#else
  return tp__fail(err, TP_ERR_DEVICE,
                  "this is one of %ld processes, but tepal was built without MPI and would train "
                  "%ld networks: install libopenmpi-dev and build it again",
                  size, size);
#endif
}
