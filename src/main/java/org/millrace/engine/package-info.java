/** Our own communicator: how ranks meet, how rings are made, and how operations reach the device and the proxies. */
package org.millrace.engine;
