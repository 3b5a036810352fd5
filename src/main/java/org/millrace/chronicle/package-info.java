/**
 * Memory and objects of Chronicle Bytes, an optional dependency that only this package uses. No option of the JVM is
 * needed. With {@code --sun-misc-unsafe-memory-access=deny}, Chronicle Bytes does not work.
 */
@NullMarked
package org.millrace.chronicle;

import org.jspecify.annotations.NullMarked;
