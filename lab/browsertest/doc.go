// Package browsertest tests the page of a cockpit in a headless Chromium, against the three
// processes of the quickstart: it releases a lease, cuts a node off and kills it while the page is
// open, and checks the accessibility tree, the requests, the console and the validity of the HTML.
// Run the tests with make cockpit-test. They require the build tag browser, and fail without
// Chromium or the Nu Html Checker.
package browsertest
