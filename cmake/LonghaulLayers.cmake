# longhaul_layer(NAME LIBRARIES...): every source below the folder NAME as one static library.
# A folder without sources yet is an empty library, so that the layers above it link all the same.
function(longhaul_layer name)
    set(folder ${PROJECT_SOURCE_DIR}/${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.cpp)
    list(REMOVE_ITEM sources ${folder}/main.c)
    list(FILTER sources EXCLUDE REGEX "^${folder}/cuda/") # LonghaulCuda.cmake's
    list(FILTER sources EXCLUDE REGEX "/(mpi|simgrid)/") # modules of their own
    if(NOT sources)
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE ${ARGN} m)
        return()
    endif()
    add_library(${name} STATIC ${sources})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${ARGN} m)
endfunction()

include(GNUInstallDirs)

# The program: cli/main.c over the library cli.
function(longhaul_program)
    if(EXISTS ${PROJECT_SOURCE_DIR}/cli/main.c)
        add_executable(longhaul ${PROJECT_SOURCE_DIR}/cli/main.c)
        target_link_libraries(longhaul PRIVATE cli)
        install(TARGETS longhaul RUNTIME)
        if(LONGHAUL_BUNDLE)
            # RPATH rather than RUNPATH: the libraries find theirs by it, too
            set_target_properties(longhaul PROPERTIES INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN/../lib/longhaul")
            target_link_options(longhaul PRIVATE -Wl,--disable-new-dtags)
        endif()
        if(NOT CMAKE_CROSSCOMPILING AND NOT LONGHAUL_SANITIZE)
            set(folder ${PROJECT_BINARY_DIR}/completion)
            add_custom_command(TARGET longhaul POST_BUILD COMMENT ""
                COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
                COMMAND longhaul help --completion bash > ${folder}/longhaul
                COMMAND longhaul help --completion zsh > ${folder}/_longhaul)
            install(FILES ${folder}/longhaul
                DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
            install(FILES ${folder}/_longhaul
                DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
        endif()
    endif()
endfunction()

# What the first simulation of a process loads: the only part that is linked with SimGrid. A sanitizer's runtime is the
# program's.
function(longhaul_simgrid)
    add_library(longhaul_simgrid MODULE ${PROJECT_SOURCE_DIR}/sim/simgrid/engine.cpp)
    set_target_properties(longhaul_simgrid PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    if(LONGHAUL_BUNDLE)
        set_target_properties(longhaul_simgrid PROPERTIES INSTALL_RPATH "$ORIGIN/..")
        target_link_options(longhaul_simgrid PRIVATE -Wl,--disable-new-dtags)
    endif()
    target_include_directories(longhaul_simgrid PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(longhaul_simgrid PRIVATE PkgConfig::SIMGRID)
    add_dependencies(sim longhaul_simgrid)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/sim/scheduler/engine_load.c APPEND PROPERTY COMPILE_DEFINITIONS
        LONGHAUL_BUILT_MODULES="$<$<NOT:$<BOOL:${LONGHAUL_BUNDLE}>>:$<TARGET_FILE_DIR:longhaul_simgrid>/>")
    install(TARGETS longhaul_simgrid LIBRARY DESTINATION lib/longhaul)
endfunction()

# What the program loads when a launcher started several of it; MPI is found, not assumed.
function(longhaul_mpi)
    find_package(MPI QUIET COMPONENTS C)
    if(NOT MPI_C_FOUND)
        message(STATUS "no MPI: sweeps spread over nodes by --part alone")
        return()
    endif()
    message(STATUS "MPI ${MPI_C_VERSION}")
    add_library(longhaul_mpi MODULE ${PROJECT_SOURCE_DIR}/cli/mpi/calls.c)
    set_target_properties(longhaul_mpi PROPERTIES PREFIX "")
    target_include_directories(longhaul_mpi PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(longhaul_mpi PRIVATE MPI::MPI_C)
    install(TARGETS longhaul_mpi LIBRARY DESTINATION lib/longhaul)
endfunction()

# Each bench/bench_*.c is a program of its own, built by the target `bench` and run by ./dev bench. What they share
# is the library bench_repeat, which a test links, too.
function(longhaul_benchmarks)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/bench_*.c
        ${PROJECT_SOURCE_DIR}/bench/bench_*.cpp)
    add_library(bench_repeat STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/repeat.c
        ${PROJECT_SOURCE_DIR}/bench/command.c)
    target_include_directories(bench_repeat PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(bench_repeat PUBLIC m)
    add_custom_target(bench)
    foreach(source ${sources})
        cmake_path(GET source STEM program)
        add_executable(${program} EXCLUDE_FROM_ALL ${source})
        set_target_properties(${program} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
        target_link_libraries(${program} PRIVATE predict exec bench_repeat)
        add_dependencies(bench ${program})
    endforeach()
    foreach(program bench_predict bench_plan)
        target_compile_definitions(${program} PRIVATE LONGHAUL_PROGRAM="$<TARGET_FILE:longhaul>")
        add_dependencies(${program} longhaul)
    endforeach()
    if(LONGHAUL_HAVE_CUDA) # of ./dev gpu
        add_executable(attention_alone EXCLUDE_FROM_ALL
            ${PROJECT_SOURCE_DIR}/bench/gpu/attention_alone.c)
        set_target_properties(attention_alone PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
        target_link_libraries(attention_alone PRIVATE exec)
    endif()
endfunction()
