/**
 * Files in a directory that processes of one user share: their names, their creators, their permissions, and their
 * deletion. The package does not know the content of the files.
 */
@NullMarked
package org.millrace.file;

import org.jspecify.annotations.NullMarked;
