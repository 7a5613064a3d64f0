# Finds NCCL 2: Nccl_FOUND, Nccl_VERSION, Nccl_INCLUDE_DIR, Nccl_LIBRARY (opened when the program
# runs, never linked). NCCL_ROOT comes first.
include(NvidiaFolders)
nvidia_folders(folders nccl)
set(system lib/${CMAKE_LIBRARY_ARCHITECTURE} include/${CMAKE_LIBRARY_ARCHITECTURE})
find_path(Nccl_INCLUDE_DIR NAMES nccl.h PATHS ${folders}
    PATH_SUFFIXES include ${system} NO_DEFAULT_PATH)
find_library(Nccl_LIBRARY NAMES libnccl.so.2 nccl NAMES_PER_DIR PATHS ${folders}
    PATH_SUFFIXES lib lib64 ${system} NO_DEFAULT_PATH)
nvidia_version(Nccl_VERSION "${Nccl_INCLUDE_DIR}/nccl.h" NCCL MAJOR MINOR PATCH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nccl REQUIRED_VARS Nccl_LIBRARY Nccl_INCLUDE_DIR
    VERSION_VAR Nccl_VERSION)
mark_as_advanced(Nccl_INCLUDE_DIR Nccl_LIBRARY)
