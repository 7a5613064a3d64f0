# CUDA is found, not assumed. Only exec/ uses it, so that without exec/ nothing is looked for
# unless LONGHAUL_CUDA=ON asks for it.
set(LONGHAUL_HAVE_CUDA OFF)
if(LONGHAUL_CUDA STREQUAL "ON" OR
   (LONGHAUL_CUDA STREQUAL "AUTO" AND EXISTS ${PROJECT_SOURCE_DIR}/exec))
    include(CheckLanguage)
    # A100 and H100 code, and PTX for what comes after; set first, because enable_language() would
    # otherwise pick its own.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        find_package(CUDAToolkit REQUIRED)
        set(LONGHAUL_HAVE_CUDA ON)
        message(STATUS "CUDA ${CUDAToolkit_VERSION}")
    elseif(LONGHAUL_CUDA STREQUAL "ON")
        message(FATAL_ERROR "LONGHAUL_CUDA=ON, and no CUDA compiler was found: put nvcc into PATH "
            "or set CUDACXX")
    endif()
elseif(NOT LONGHAUL_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "LONGHAUL_CUDA is '${LONGHAUL_CUDA}': expected AUTO, ON or OFF")
endif()
