# CUDA is found, not assumed. Needed to build: nvcc and the headers of the toolkit; used where their
# headers are found: cuDNN and NCCL. The libraries themselves are opened by the program when the
# backend is (exec/cuda/library.c), so that one program runs with and without them; only the static
# runtime is linked, which loads the driver in the same way.
set(LONGHAUL_HAVE_CUDA OFF)
if(NOT LONGHAUL_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "LONGHAUL_CUDA is '${LONGHAUL_CUDA}': expected AUTO, ON or OFF")
endif()
if(NOT LONGHAUL_CUDA STREQUAL "OFF")
    include(CheckLanguage)
    # A100 and H100 code, and PTX for what comes after; set first, because enable_language() would
    # otherwise pick its own.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        set(CMAKE_CUDA_STANDARD 17)
        set(CMAKE_CUDA_STANDARD_REQUIRED ON)
        enable_language(CUDA)
        find_package(CUDAToolkit REQUIRED)
        set(LONGHAUL_HAVE_CUDA ON)
    elseif(LONGHAUL_CUDA STREQUAL "ON")
        message(FATAL_ERROR "LONGHAUL_CUDA=ON, and no CUDA compiler was found: put nvcc into PATH "
            "or set CUDACXX")
    endif()
endif()
if(LONGHAUL_HAVE_CUDA)
    find_package(Cudnn 9.10.2) # what exec/cuda/versions.c does not refuse
    find_package(Nccl 2.18.3)
    find_path(Cupti_INCLUDE_DIR NAMES cupti.h NO_DEFAULT_PATH
        PATHS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
    if(Cupti_INCLUDE_DIR)
        set(Cupti_FOUND ON)
    endif()
    message(STATUS "CUDA ${CUDAToolkit_VERSION}, cuDNN ${Cudnn_VERSION}, NCCL ${Nccl_VERSION}")
endif()

# The backend below exec/cuda/, or what says that it was not built.
function(longhaul_cuda)
    set(folder ${PROJECT_SOURCE_DIR}/exec/cuda)
    if(NOT LONGHAUL_HAVE_CUDA)
        target_sources(exec PRIVATE ${folder}/absent.c)
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
    list(REMOVE_ITEM sources ${folder}/absent.c)
    file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)

    add_library(exec_cuda_kernels STATIC ${kernels})
    target_include_directories(exec_cuda_kernels PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_options(exec_cuda_kernels PRIVATE
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics>)

    add_library(exec_cuda STATIC ${sources})
    target_include_directories(exec_cuda SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_definitions(exec_cuda PRIVATE CUDA_LIBRARY_DIR="${CUDAToolkit_LIBRARY_DIR}")
    foreach(package Cudnn Nccl Cupti)
        string(TOUPPER ${package} upper)
        if(${package}_FOUND)
            target_include_directories(exec_cuda SYSTEM PUBLIC ${${package}_INCLUDE_DIR})
            target_compile_definitions(exec_cuda PUBLIC HAVE_${upper}=1
                PRIVATE ${upper}_LIBRARY="${${package}_LIBRARY}")
        endif()
    endforeach()
    target_link_libraries(exec_cuda PUBLIC exec exec_cuda_kernels CUDA::cudart_static
        ${CMAKE_DL_LIBS})
    target_link_libraries(exec PUBLIC exec_cuda)
endfunction()
