# Runs one command file and compares what it prints and its exit code.
#
#   NAME.cmd    shell commands (sh -e); `longhaul` is the program under test, $T an empty folder for
#               its files, $S the source tree. The working folder is tests/cli.
#   NAME.out    the standard output wanted; no file: none
#   NAME.err    the standard error wanted; no file: none
#   NAME.code   the exit code wanted; no file: 0
#
# The paths of $T, $S and the folder of the program come out as the words $T, $S and $B.
# A command file that ends with exit code 77 cannot be tried here: what it printed says why, and the test is skipped.
# UPDATE_GOLDEN=1 in the environment rewrites .out, .err and .code instead of comparing.
#
# Run with -D COMMAND_FILE -D PROGRAM -D SOURCE -D SCRATCH.
cmake_minimum_required(VERSION 3.25)

cmake_path(GET COMMAND_FILE PARENT_PATH folder)
cmake_path(GET COMMAND_FILE STEM name)
cmake_path(GET PROGRAM PARENT_PATH program_folder)
set(wanted ${folder}/${name})

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH}/T)
execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C T=${SCRATCH}/T S=${SOURCE}
        PATH=${program_folder}:$ENV{PATH} --unset=LONGHAUL_DATA sh -e ${COMMAND_FILE}
    WORKING_DIRECTORY ${SOURCE}/tests/cli
    INPUT_FILE /dev/null
    OUTPUT_FILE ${SCRATCH}/out
    ERROR_FILE ${SCRATCH}/err
    RESULT_VARIABLE code)
file(WRITE ${SCRATCH}/code "${code}\n")
if(code EQUAL 77)
    file(READ ${SCRATCH}/out why)
    message(STATUS "cli/${name} skipped: ${why}")
    return()
endif()

set(empty_code "0\n")
set(failed)
foreach(part out err code)
    file(READ ${SCRATCH}/${part} got)
    string(REPLACE ${SCRATCH}/T "$T" got "${got}")
    string(REPLACE ${program_folder} "$B" got "${got}")
    string(REPLACE ${SOURCE} "$S" got "${got}")
    if("$ENV{UPDATE_GOLDEN}" STREQUAL "1")
        if(got STREQUAL "${empty_${part}}")
            file(REMOVE ${wanted}.${part})
        else()
            file(WRITE ${wanted}.${part} "${got}")
        endif()
        continue()
    endif()
    set(want "${empty_${part}}")
    if(EXISTS ${wanted}.${part})
        file(READ ${wanted}.${part} want)
    endif()
    if(NOT got STREQUAL want)
        list(APPEND failed ${part})
        file(WRITE ${SCRATCH}/${part}.want "${want}")
        file(WRITE ${SCRATCH}/${part}.got "${got}")
        execute_process(COMMAND diff -u ${SCRATCH}/${part}.want ${SCRATCH}/${part}.got)
    endif()
endforeach()

if(failed)
    message(FATAL_ERROR "${name}: not as wanted: ${failed} (UPDATE_GOLDEN=1 accepts what came)")
endif()
