// Package skiff gives tests a Kubernetes API server of their own, which is there in milliseconds.
//
//	func TestController(t *testing.T) {
//		config := skiff.Start(t, skiff.CRDs("../config/crd"))
//		manager, err := ctrl.NewManager(config, ctrl.Options{})
//		// …
//	}
//
// What takes long to prepare is prepared once ([Prepare]) and copied for each test in milliseconds ([Fork]). A control plane has
// faults ([ControlPlane.Inject]) and a clock of its own ([ControlPlane.Clock]).
//
// The server is the program skiff: the one that the variable SKIFF names, else the one on the PATH. It keeps its objects in
// memory, serves all tests of a package that have the same options, each with a control plane of its own, and ends with the
// process of the tests, also when that is killed. Where a test fails, what its control plane was asked is logged.
//
// Suites that begin with envtest change an import and a type: see [Environment].
package skiff
