package main

import (
	"go/ast"
	"strconv"
)

// enterMethod keeps what a method says about its type.
func (p *goPackage) enterMethod(method *ast.FuncDecl) {
	of, ok := p.types[goExpr{nil, method.Recv.List[0].Type}.lastName()]
	if !ok {
		return
	}
	switch method.Name.Name {
	case "MarshalJSON", "UnmarshalJSON":
		of.ownJSON = true
	case "OpenAPISchemaType":
		of.saysType = true
		of.schemaType = returnedStrings(method)
	case "OpenAPISchemaFormat":
		for _, format := range returnedStrings(method) {
			of.schemaFormat = format
		}
	case "OpenAPIV3OneOfTypes":
		of.schemaOneOf = returnedStrings(method)
	}
}

// returnedStrings are the string literals in what a function returns.
func returnedStrings(function *ast.FuncDecl) []string {
	var found []string
	ast.Inspect(function.Body, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(literal.Value); err == nil && text != "" {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}
