# What `cmake --install` puts where: library, headers, default model, pkg-config and CMake package files. Relocatable.
include(CMakePackageConfigHelpers)

install(TARGETS theo EXPORT theodolite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/theo" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/models/" DESTINATION ${CMAKE_INSTALL_DATADIR}/theodolite/models)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" DESTINATION ${CMAKE_INSTALL_DOCDIR})

# From lib/ (or lib/x86_64-linux-gnu/) back to the prefix: the .pc file finds itself, so the tree may be moved.
file(RELATIVE_PATH THEO_PC_LIB_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/theo.pc.in" "${PROJECT_BINARY_DIR}/theo.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/theo.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT theodolite NAMESPACE theodolite:: FILE theodolite-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/theodolite)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/theodolite-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/theodolite-config-version.cmake" DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/theodolite)
