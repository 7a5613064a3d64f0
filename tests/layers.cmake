# Fails when an include points up the order of the layers. Run with -D SOURCE=<tree>.
# Each layer: the layers that it may include beside itself.
set(sees_base)
set(sees_traces base)
set(sees_models base traces)
set(sees_schedule base traces models)
set(sees_sim base traces models schedule)
set(sees_exec base traces models schedule)
set(sees_cli base traces models schedule sim exec)
set(layers base traces models schedule sim exec cli)

set(faults 0)
set(includes 0)

macro(fault text)
    message(NOTICE "${text}")
    math(EXPR faults "${faults} + 1")
endmacro()

foreach(layer ${layers})
    file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/${layer}/*.c ${SOURCE}/${layer}/*.h
        ${SOURCE}/${layer}/*.cpp ${SOURCE}/${layer}/*.hpp ${SOURCE}/${layer}/*.cu
        ${SOURCE}/${layer}/*.cuh ${SOURCE}/${layer}/*.def)
    foreach(file ${files})
        file(STRINGS ${SOURCE}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
        foreach(line ${lines})
            string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" header "${line}")
            math(EXPR includes "${includes} + 1")
            string(REGEX REPLACE "/.*" "" target "${header}")
            if(NOT EXISTS ${SOURCE}/${header})
                fault("${file}: \"${header}\" is not written from the root of the tree")
            elseif(NOT target STREQUAL layer AND NOT target IN_LIST sees_${layer})
                fault("${file}: ${layer}/ must not see \"${header}\"")
            elseif(layer STREQUAL exec AND header MATCHES "^models/cost")
                fault("${file}: what runs must not know what was predicted: \"${header}\"")
            endif()
        endforeach()
    endforeach()
endforeach()

# Figures are drawn from the CSV files that the program writes, and by nothing else.
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/plots/*)
foreach(file ${files})
    if(NOT file MATCHES "\\.(gp|md)$")
        fault("${file}: plots/ holds gnuplot scripts (*.gp) only")
    endif()
endforeach()

if(includes EQUAL 0)
    message(FATAL_ERROR "no includes found below '${SOURCE}'")
elseif(faults GREATER 0)
    message(FATAL_ERROR "${faults} includes or files out of place")
endif()
message(STATUS "${includes} includes, all in order")
