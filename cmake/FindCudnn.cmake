# Finds cuDNN 9: Cudnn_FOUND, Cudnn_VERSION, Cudnn_INCLUDE_DIR, Cudnn_LIBRARY (opened when the
# program runs, never linked). CUDNN_ROOT comes first.
include(NvidiaFolders)
nvidia_folders(folders cudnn)
set(system lib/${CMAKE_LIBRARY_ARCHITECTURE} include/${CMAKE_LIBRARY_ARCHITECTURE})
find_path(Cudnn_INCLUDE_DIR NAMES cudnn_version.h PATHS ${folders}
    PATH_SUFFIXES include ${system} NO_DEFAULT_PATH)
# Wheels have only the name with the version, and one folder is looked through before the next.
find_library(Cudnn_LIBRARY NAMES libcudnn.so.9 cudnn NAMES_PER_DIR PATHS ${folders}
    PATH_SUFFIXES lib lib64 ${system} NO_DEFAULT_PATH)
nvidia_version(Cudnn_VERSION
    "${Cudnn_INCLUDE_DIR}/cudnn_version.h;${Cudnn_INCLUDE_DIR}/cudnn_version_v9.h"
    CUDNN MAJOR MINOR PATCHLEVEL)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cudnn REQUIRED_VARS Cudnn_LIBRARY Cudnn_INCLUDE_DIR
    VERSION_VAR Cudnn_VERSION)
mark_as_advanced(Cudnn_INCLUDE_DIR Cudnn_LIBRARY)
