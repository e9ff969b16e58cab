package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
)

// A type as it stands in a source file.
type goExpr struct {
	source *source
	expr   ast.Expr
}

// Types of the standard library that stand for others.
var standard = map[string]string{"time.Duration": "int64"}

// named is the name that an identifier stands for; false for what Go itself has.
func (e goExpr) named(expr ast.Expr) (typeName, bool) {
	switch expr := expr.(type) {
	case *ast.Ident:
		return typeName{e.source.in.path, expr.Name}, expr.IsExported()
	case *ast.SelectorExpr:
		in, ok := expr.X.(*ast.Ident)
		if !ok {
			return typeName{}, false
		}
		name := typeName{e.source.imports[in.Name], expr.Sel.Name}
		_, isStandard := standard[name.path+"."+name.name]
		return name, !isStandard
	default:
		return typeName{}, false
	}
}

// references are the named types in it.
func (e goExpr) references() []typeName {
	switch expr := e.expr.(type) {
	case *ast.StarExpr:
		return goExpr{e.source, expr.X}.references()
	case *ast.ArrayType:
		return goExpr{e.source, expr.Elt}.references()
	case *ast.MapType:
		key, value := goExpr{e.source, expr.Key}, goExpr{e.source, expr.Value}
		return append(key.references(), value.references()...)
	default:
		if name, ok := e.named(expr); ok {
			return []typeName{name}
		}
		return nil
	}
}

// lastName is `ObjectMeta` of `metav1.ObjectMeta`.
func (e goExpr) lastName() string {
	switch expr := e.expr.(type) {
	case *ast.StarExpr:
		return goExpr{e.source, expr.X}.lastName()
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.Ident:
		return expr.Name
	default:
		return ""
	}
}

// text is the type with the packages as the data names them.
func (e goExpr) text() (string, error) {
	switch expr := e.expr.(type) {
	case *ast.StarExpr:
		return e.around("*", expr.X)
	case *ast.ArrayType:
		if expr.Len == nil {
			return e.around("[]", expr.Elt)
		}
	case *ast.MapType:
		key, err := goExpr{e.source, expr.Key}.text()
		if err != nil {
			return "", err
		}
		return e.around("map["+key+"]", expr.Value)
	case *ast.InterfaceType:
		if expr.Methods.NumFields() == 0 {
			return "interface{}", nil
		}
	case *ast.Ident:
		return expr.Name, nil
	case *ast.SelectorExpr:
		return e.qualified(expr)
	}
	return "", fmt.Errorf("%s: a %T can't be exchanged", e.source.in.path, e.expr)
}

func (e goExpr) around(prefix string, inner ast.Expr) (string, error) {
	text, err := goExpr{e.source, inner}.text()
	return prefix + text, err
}

func (e goExpr) qualified(expr *ast.SelectorExpr) (string, error) {
	name, ok := e.named(expr)
	if ok {
		return shortName(name.path) + "." + name.name, nil
	}
	if stands, ok := standard[name.path+"."+name.name]; ok {
		return stands, nil
	}
	return "", fmt.Errorf("%s: %s.%s is not known", e.source.in.path, name.path, name.name)
}

// A constant with its type; where the declaration names none, that of a conversion: `X = Type("x")`.
type constant struct {
	name  string
	of    typeName
	value goExpr
}

func (s *source) readConstants(spec *ast.ValueSpec) []*constant {
	var found []*constant
	for at, name := range spec.Names {
		if at >= len(spec.Values) {
			break
		}
		read := &constant{name: name.Name, value: goExpr{s, spec.Values[at]}}
		of := spec.Type
		if call, ok := spec.Values[at].(*ast.CallExpr); ok && of == nil {
			of = call.Fun
		}
		if of != nil {
			read.of, _ = read.value.named(of)
		}
		found = append(found, read)
	}
	return found
}

// evaluate is the string that a constant comes from.
func (u *universe) evaluate(value goExpr) (string, error) {
	switch expr := value.expr.(type) {
	case *ast.BasicLit:
		if expr.Kind == token.STRING {
			return strconv.Unquote(expr.Value)
		}
	case *ast.CallExpr:
		if len(expr.Args) == 1 {
			return u.evaluate(goExpr{value.source, expr.Args[0]})
		}
	case *ast.Ident:
		return u.constant(typeName{value.source.in.path, expr.Name})
	case *ast.SelectorExpr:
		if name, ok := value.named(expr); ok {
			return u.constant(name)
		}
	}
	return "", fmt.Errorf("%s: a %T is not a string constant", value.source.in.path, value.expr)
}

func (u *universe) constant(name typeName) (string, error) {
	in, err := u.load(name.path)
	if err != nil {
		return "", err
	}
	for _, constant := range in.constants {
		if constant.name == name.name {
			return u.evaluate(constant.value)
		}
	}
	return "", fmt.Errorf("%s has no constant %s", name.path, name.name)
}
