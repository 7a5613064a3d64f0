# Installs the build, moves the installed tree, and asks a program in it where the data is.
# Run with -D BUILD -D SOURCE -D WHERE=<data_where> -D SCRATCH.
cmake_minimum_required(VERSION 3.25)
unset(ENV{LONGHAUL_DATA})
unset(ENV{DESTDIR})

function(run_in folder want)
    execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE got
        ERROR_VARIABLE error RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT code EQUAL 0 OR NOT got STREQUAL want)
        message(FATAL_ERROR "${ARGN}\n  gave '${got}' (exit ${code})\n  want '${want}'\n${error}")
    endif()
endfunction()

set(file traces/published/measurements.csv)
file(REMOVE_RECURSE ${SCRATCH})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/first
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(COPY ${WHERE} DESTINATION ${SCRATCH}/first/bin)
file(RENAME ${SCRATCH}/first ${SCRATCH}/moved)

# "bin/.." is resolved by the system, not by the program.
run_in(/ "${SCRATCH}/moved/bin/../share/longhaul/${file}" ${SCRATCH}/moved/bin/data_where ${file})
# Both files of measured rows, and the models that rows of the second name.
foreach(other external.csv external-models/qwen3-8b.json README.md)
    run_in(/ "${SCRATCH}/moved/bin/../share/longhaul/traces/published/${other}"
        ${SCRATCH}/moved/bin/data_where traces/published/${other})
endforeach()
# The schemas of what --json prints.
if(NOT EXISTS ${SCRATCH}/moved/share/longhaul/docs/schema/predict.json)
    message(FATAL_ERROR "docs/schema is not installed")
endif()
# From the build tree, the source tree serves.
run_in(/ "${SOURCE}/${file}" ${WHERE} ${file})
# The environment comes first.
set(ENV{LONGHAUL_DATA} ${SCRATCH}/moved/share/longhaul)
run_in(/ "${SCRATCH}/moved/share/longhaul/${file}" ${WHERE} ${file})
unset(ENV{LONGHAUL_DATA})

# The program itself finds its presets there: nothing it prints names the source tree.
if(EXISTS ${SCRATCH}/moved/bin/longhaul)
    foreach(what models clusters)
        execute_process(COMMAND ${SCRATCH}/moved/bin/longhaul list ${what} WORKING_DIRECTORY /
            OUTPUT_VARIABLE got ERROR_VARIABLE error RESULT_VARIABLE code)
        if(NOT code EQUAL 0 OR got STREQUAL "")
            message(FATAL_ERROR "moved longhaul list ${what}: exit ${code}\n${error}")
        endif()
    endforeach()
    # It loads the simulator of its own tree, not that of the build.
    execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_DEBUG=files ${SCRATCH}/moved/bin/longhaul --version
        WORKING_DIRECTORY / OUTPUT_VARIABLE got ERROR_VARIABLE error RESULT_VARIABLE code)
    string(FIND "${error}" "${SCRATCH}/moved/bin/../lib/longhaul/longhaul_simgrid.so" at)
    if(NOT code EQUAL 0 OR NOT got MATCHES "\nSimGrid [0-9.]+\n" OR at EQUAL -1)
        message(FATAL_ERROR "moved longhaul --version: exit ${code}, its simulator is not loaded\n${got}")
    endif()
endif()
file(REMOVE_RECURSE ${SCRATCH})
