# The shipped data keeps its place below share/longhaul that it has in the source tree, so that
# base/data_path.h finds it by one relative path in either.
include(GNUInstallDirs)

function(longhaul_install)
    set(data ${CMAKE_INSTALL_DATADIR}/longhaul)
    foreach(folder launch models/presets traces/documents traces/published plots docs/schema)
        cmake_path(GET folder PARENT_PATH parent)
        if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
            install(DIRECTORY ${folder} DESTINATION ${data}/${parent})
        endif()
    endforeach()
    file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
    install(FILES README.md LICENSE CHANGELOG.md ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR})
    install(DIRECTORY docs/accuracy docs/strategies DESTINATION ${CMAKE_INSTALL_DOCDIR})
    file(GLOB manual CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.1)
    if(manual)
        install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    endif()

    file(RELATIVE_PATH from_program ${CMAKE_INSTALL_FULL_BINDIR}
        ${CMAKE_INSTALL_FULL_DATADIR}/longhaul)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/base/data_path.c APPEND PROPERTY COMPILE_DEFINITIONS
        LONGHAUL_INSTALL_DATA="${from_program}" LONGHAUL_SOURCE_DATA="${PROJECT_SOURCE_DIR}")
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY COMPILE_DEFINITIONS
        LONGHAUL_VERSION="${PROJECT_VERSION}")
endfunction()
