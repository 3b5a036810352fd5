/**
 * Networks that reduce: what one can be asked for, and where others than Millrace's own come from. The rooms below
 * ({@code mesh}) have Millrace's own.
 */
@NullMarked
package org.millrace.collnet;

import org.jspecify.annotations.NullMarked;
