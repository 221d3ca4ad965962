"""Graphs read, run, changed and made again."""
import torch, torch.fx as fx, torch.nn as nn, torch.nn.functional as F, math
from math import sqrt
def my(x,y): return x+y
fx.wrap('my'); fx.wrap('len')
def f(x:torch.Tensor, n:int=2)->torch.Tensor:
    return my(x, math.sqrt(x.size(0)))+len(x)+sqrt(n)
g=fx.symbolic_trace(f); print(repr(g.code)); print(g.graph); print(list(g.graph.nodes), [n.users for n in g.graph.nodes][0])
class M(nn.Module):
    def __init__(s): super().__init__(); s.l=nn.Linear(2,2)
    def forward(s,x): 
        return F.relu(s.l(x)).neg()
g=fx.symbolic_trace(M()); print(repr(g), g.__class__.__name__)
try: fx.Interpreter(g).run(torch.ones(3))
except Exception as e: print(repr(e), str(e), getattr(e,'__notes__',None))
try: g(torch.ones(3))
except Exception as e: print(repr(e))
for n in list(g.graph.nodes):
    if n.op=='call_function':
        with g.graph.inserting_after(n): new=g.graph.call_function(torch.tanh, n.args)
        n.replace_all_uses_with(new)
        try: g.graph.erase_node(new)
        except Exception as e: print(repr(e))
        g.graph.erase_node(n)
g.recompile(); print(g.code); g.graph.lint()
from torch.fx.passes.shape_prop import ShapeProp
ShapeProp(g).propagate(torch.ones(1,2))
for n in g.graph.nodes: print(n.name,n.meta.get('tensor_meta'),n.meta.get('type'))
def pat(a,b): return a+b
def rep(a,b): return torch.mul(a,b)
def h(x,y): return (x+y).relu()+ (y+x)
g=fx.symbolic_trace(h); m=fx.replace_pattern(g,pat,rep); print(m, g.code)
gr=fx.Graph(); x=gr.placeholder('x'); y=gr.call_function(torch.add,(x,[x,{'a':x}]),{'alpha':slice(1,x)}); z=gr.call_method('foo',(y,'s')); gr.output((z,)); print(gr); print(repr(x), x.args, y.all_input_nodes, y.prev,y.next,gr.python_code('self').src)
gm=fx.GraphModule({}, gr); print(repr(gm), gm)
class T(fx.Transformer):
    def call_function(s,target,args,kwargs):
        return super().call_function(torch.sub if target is __import__('operator').add else target,args,kwargs)
g=fx.symbolic_trace(h); print(T(g).transform().code)
try: y.args[1].append(2)
except Exception as e: print(type(e), e)
def q(x):
    a=x+1; b=x.relu_(); return x
g=fx.symbolic_trace(q); print(g.graph.eliminate_dead_code(), g.graph)
g=fx.symbolic_trace(nn.Linear(2,3)); print(g, g.graph)
g=fx.symbolic_trace(nn.Sequential(nn.Linear(2,3),nn.ReLU())); print(g, g.graph)
try: fx.Proxy(fx.Graph().placeholder('x'))+1
except Exception as e: print(repr(e))
class S(nn.Module):
    def __init__(s): super().__init__(); s.c=nn.Conv2d(1,1,1); s.b=nn.BatchNorm2d(1)
    def forward(s,x): 
        if x.dim()>3: return s.b(s.c(x))
        return x
try: fx.symbolic_trace(S())
except Exception as e: print(repr(e))
g=fx.symbolic_trace(lambda x: x.add(1)); g2=fx.symbolic_trace(lambda x: x, {'x':None}); print(g.print_readable(), type(g).__name__)
