"""Programs as graphs: what symbolic tracing makes of calls, and what it refuses."""
import torch, torch.fx as fx, torch.nn as nn, torch.nn.functional as F, math
class M(nn.Module):
    def __init__(s):
        super().__init__(); s.lin=nn.Linear(3,4); s.w=nn.Parameter(torch.ones(4)); s.seq=nn.Sequential(nn.ReLU(),nn.Linear(4,2)); s.register_buffer('b',torch.zeros(2))
    def forward(s,x:torch.Tensor,y=None,*,k:int=2)->torch.Tensor:
        h=s.seq(s.lin(x))*s.w
        return h.sum()+s.b
g=fx.symbolic_trace(M())
print(repr(g.code)); r=g.print_readable(); print(repr(r)); print(type(g).__name__, list(g.state_dict())); print(g.graph)
def f(x,y): return 2-x, x@y, torch.add(x,y,alpha=2), x.T, abs(x), 3/x, x//2, 2**x, x==y, ~x, x<3, 3<x, getattr(x,'grad'), torch.nn.functional.linear(x,y), x.sum(dim=(0,1)), x.to(torch.float64), x.to('cpu'), x.to(torch.device('cpu')), x[None,...,1:,::2], x[y], torch.zeros(3)+x, float('inf')*x, float('nan')*x, F.max_pool2d(x,2), F.softmax(x,-1), F.gelu(x), F.mse_loss(x,y), F.conv2d(x,y,padding=1), torch.nn.functional.scaled_dot_product_attention(x,y,y), torch.linalg.norm(x), torch.fft.fft(x), torch.special.expit(x), F.avg_pool2d(x,2), F.layer_norm(x,(3,)), x.max(1), torch.max(x,dim=1)[0], torch.stack([x,y]), torch.einsum('ij,jk',x,y), divmod(1,2), math.pi*x, x.unsqueeze(0).shape[1:], torch.where(x>0,x,y), F.pad(x,(1,1)), torch.flatten(x,1), F.cross_entropy(x,y), F.adaptive_avg_pool2d(x,1), F.interpolate(x, scale_factor=2), F.one_hot(x), F.embedding(x,y),x.add_(1)
g=fx.symbolic_trace(f); print(g.code); print(g.graph)
def t(fn,*a,**k):
    try: print('OK', fx.symbolic_trace(fn,*a,**k).code)
    except Exception as e: print(type(e), e)
t(lambda x: x if x.sum()>0 else -x)
t(lambda x: [i for i in x])
t(lambda x: len(x))
t(lambda x: x.size(0) and int(x))
t(lambda x: float(x))
t(lambda *x: x[0])
t(lambda x: torch.zeros(3)[x])
t(lambda x: 3 in x)
t(lambda **k: k['a'])
def br(x,b): return x+1 if b else x-1
t(br, concrete_args={'b':True})
t(br, concrete_args={'b':None})
def opt(x,b=3): return x+b
t(opt, concrete_args={'b':4})
t(lambda x: torch.ones(2)*x)
t(lambda x: {**x})
t(lambda x: bool(x))
t(lambda x: str(x))
t(lambda x: x.foo)
def setit(x): 
    x[0]=1; x+=2; x.y=3; return x
t(setit)
t(lambda x: (x, None, {'a':x,3:(x,)}, [x,[x]], slice(x,1), range(3)))
def unp(x):
    a,b=x; return a+b
t(unp)
def unp(x):
    a,*b=x.split(1); return a
t(unp)
t(lambda x: torch.jit.annotate(int, 3)*x)
t(lambda x: x.add(other=x, alpha=2))
t(lambda x: x.is_cuda)
class A(nn.Module):
    def forward(s,x): return s.foo(x)
    def foo(s,x): return x.relu()
t(A())
class B(nn.Module):
    def __init__(s): super().__init__(); s.a=A(); s.l=nn.ModuleList([nn.Linear(1,1) for _ in range(2)]); s.d=nn.ModuleDict({'k':nn.ReLU()})
    def forward(s,x,*args):
        for l in s.l: x=l(x)
        return s.d['k'](s.a(x))
g=fx.symbolic_trace(B()); print(g.graph,g.code)
class T(fx.Tracer):
    def is_leaf_module(s,m,q): return isinstance(m,A)
gr=T().trace(B()); print(gr)
